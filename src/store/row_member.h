/*
 * The letters by which statements say their parameters and read their columns,
 * for the drivers db.h and pg.h, which add what their database has.
 */
#ifndef ROW_MEMBER_H
#define ROW_MEMBER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rc.h"

/* The largest time (ms, some 30,000 years). */
#define ROW_TIME_MAX 1000000000000000

/* Neighbouring columns of a row as members of a struct: one entry for each, in
 * their order. */
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

struct row_range {
	struct row_value first, last;
};

/* With the function that gives the value of a word, or false. */
#define ROW_WORD(type, member, parse) ROW_WORD_MEMBER('e', type, member, parse)

#define ROW_WORD_MEMBER(letter, type, member, parse)            \
	{                                                       \
#member, letter, offsetof(struct type, member), \
		    sizeof(((struct type *)0)->member), parse   \
	}

/*
 * A value that the driver has read from a column for that letter: a number for
 * i, m, d and ?, data for the others, and for w what the database has.  Text
 * has a NUL after it.
 */
struct row_column {
	bool is; /* there is a value; else the others are 0 */
	int64_t number;
	const void *data;
	size_t n;
};

/* Whether the letter reads a number; another one reads text, and not bytes. */
bool row_letter_is_number(char letter);
bool row_letter_is_text(char letter);

/*
 * Puts the column into what the next arguments point to:
 *
 *	i	int64_t *; NULL is 0
 *	m	int64_t *; a time or a duration (ms): NULL is 0, and a number is
 *		neither negative nor so large that a sum with it overflows
 *	d	int *; a count: neither negative nor INT_MAX; NULL is 0
 *	?	bool *; NULL is false
 *	v	bool *; whether there is a value
 *	s	char **; a copy, which the caller frees; NULL is NULL
 *	f	char *, size_t; a text for a field of that size; NULL is ""
 *	u	char *, size_t; the text of a UUID, for a field of that size;
 *		NULL is ""
 *	p	const char **; in the row; NULL is NULL
 *	b	const void **, size_t *; in the row; NULL is NULL, 0
 *	-	(no argument) the column is not read
 *
 * RC_CORRUPT: the value is out of the range of the letter; RC_NOMEM;
 * RC_INVALID: there is no such letter.
 */
enum rc row_put_next(const struct row_column *c, char letter, va_list *ap);

/*
 * The same into the member.  Its letters are those, and
 *
 *	x	unsigned char[]; bytes of exactly that size
 *	w	struct row_value; a number, or bytes of their size
 *	e	an enum; parse() gives the value of a word, or false
 *	a	struct buf, which the caller frees: a copy of any bytes
 *
 * b has a struct row_bytes.
 */
enum rc
row_put(const struct row_column *c, const struct row_member *m, void *member);

/* The first of the statement's columns that have the members' names; -1: it
 * does not have them.  It has count columns, with these names. */
int row_first(const struct row_member *m, size_t n, int count,
    const char *(*name)(const void *statement, int i), const void *statement);

/* A value for a parameter. */
enum row_kind {
	ROW_NULL,
	ROW_NUMBER,
	ROW_BOOLEAN, /* the number 0 or 1 */
	ROW_TEXT,
	ROW_BYTES,
	ROW_UUID /* bytes, in .uuid; none, and zeros there: it is no UUID */
};

struct row_parameter {
	enum row_kind kind;
	int64_t number;
	const void *data;
	size_t n;
	unsigned char uuid[16];
};

/*
 * Takes the value from the next arguments; false: there is no such letter.
 *
 *	i	int64_t
 *	z	int64_t; 0 is NULL
 *	d	int
 *	?	int; a boolean
 *	s	const char *; NULL is NULL
 *	t	const char *; NULL and "" are NULL
 *	b	const void *, size_t
 *	o	const void *, size_t; 0 bytes are NULL
 *	u	const char *, a UUID.  NULL is NULL, a text that is no UUID is
 *		what no row has: no bytes, or the UUID of zeros
 *	w	const struct row_value *
 *	n	(no argument) NULL
 */
bool row_parameter(struct row_parameter *p, char letter, va_list *ap);

#endif
