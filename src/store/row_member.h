/*
 * Neighbouring columns of a row as members of a struct: one entry for each, in
 * their order.  A store reads them by its own function: db_members() and
 * pg_members(), which also say what the letters are.
 */
#ifndef ROW_MEMBER_H
#define ROW_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest time (ms, some 30,000 years). */
#define ROW_TIME_MAX 1000000000000000

struct row_member {
	const char *name; /* of the column */
	char letter;
	size_t offset, size; /* of the member */
	bool (*parse)(const char *, int *);
};

/* The member of the letter b. */
struct row_bytes {
	const void *data; /* in the row */
	size_t n;
};

#define ROW_MEMBER(letter, type, member) \
	ROW_WORD_MEMBER(letter, type, member, NULL)

/* What one store has as a number of 48 bits, of which half are negative;
 * another as bytes. */
#define ROW_NUMBER_HALF (INT64_C(1) << 47)
struct row_value {
	size_t n; /* 0: a number */
	int64_t number;
	unsigned char bytes[16];
};

/* With the function that gives the value of a word, or false. */
#define ROW_WORD(type, member, parse) ROW_WORD_MEMBER('e', type, member, parse)

#define ROW_WORD_MEMBER(letter, type, member, parse)            \
	{                                                       \
#member, letter, offsetof(struct type, member), \
		    sizeof(((struct type *)0)->member), parse   \
	}

#endif
