/*
 * Characters and numbers in ASCII, whatever the locale is.
 */
#ifndef ASCII_H
#define ASCII_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool
ascii_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool
ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char
ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The value of a hexadecimal digit; -1: it is none. */
static inline int
ascii_hex(char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c = ascii_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a decimal number without a sign, which is all of the text; false: it is
 * none, or too large. */
static inline bool
ascii_number(const char *text, int64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, 10);
	return ascii_is_digit(*text) && *end == '\0' && errno == 0;
}

#endif
