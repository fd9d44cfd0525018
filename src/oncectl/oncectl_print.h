/*
 * How oncectl prints: tables for people, and one JSON object on each line for
 * programs.  A row is any struct, and one array of columns describes it for
 * both.  When there is no memory left, oncectl prints that and exits with
 * status 1.
 */
#ifndef ONCECTL_PRINT_H
#define ONCECTL_PRINT_H

#include <stdint.h>
#include <stdio.h>

#include <cJSON.h>

enum oncectl_kind {
	ONCECTL_TEXT,        /* char *; NULL is null */
	ONCECTL_ARRAY,       /* char[]; "" is null */
	ONCECTL_INT,         /* int */
	ONCECTL_INT_OR_NULL, /* int; 0 is null */
	ONCECTL_NUMBER,      /* int64_t */
	ONCECTL_TIME,        /* int64_t, wall clock (ms); 0 is null */
	ONCECTL_BOOL,        /* bool; JSON only */
	ONCECTL_KEY_STATE,   /* enum record_state */
	ONCECTL_EFFECT_STATE /* enum effect_state */
};

struct oncectl_column {
	const char *member; /* the name in JSON and in lines */
	const char *title;  /* the title in tables; NULL: not in tables */
	unsigned place;     /* in tables, from the left: 1, 2, ...; 0: none */
	size_t offset;      /* in the row's struct */
	enum oncectl_kind kind;
};

/*
 * Makes text for a terminal: each byte that is not printable in the locale
 * becomes \xNN, and a backslash becomes two.  The caller frees it.
 */
char *oncectl_print_escaped(const char *s);

/* Formats a time of the wall clock (ms) as RFC 3339 to the second; "-" for
 * 0. */
#define ONCECTL_PRINT_TIME 32
const char *oncectl_print_time(int64_t wall, char out[ONCECTL_PRINT_TIME]);

/* Prints one row as lines "member: value" on stdout; "-" is null. */
void oncectl_print_lines(
    const struct oncectl_column *columns, size_t n, const void *row);

/*
 * A list of rows: as objects for programs, or with a file in columns that are
 * as wide as their widest cell so far.  The array of n columns must outlive the
 * list.  An empty text is printed as "-".  Memory is bounded for any number of
 * rows.  oncectl_print_table_free() prints the remaining rows; a table without
 * rows prints nothing.
 */
struct oncectl_table;
struct oncectl_table *
oncectl_print_table(FILE *file, const struct oncectl_column *columns, size_t n);
void oncectl_print_row(struct oncectl_table *t, const void *row);
void oncectl_print_table_free(struct oncectl_table *t);

/* Adds members to an object.  A text that is NULL and a time that is 0 become
 * null.  Bytes that are no UTF-8 become U+FFFD. */
cJSON *oncectl_print_object(void);
void oncectl_print_members(
    cJSON *o, const struct oncectl_column *columns, size_t n, const void *row);
void oncectl_print_json_text(cJSON *o, const char *name, const char *text);
void oncectl_print_json_number(cJSON *o, const char *name, int64_t n);
void oncectl_print_json_time(cJSON *o, const char *name, int64_t wall);
void oncectl_print_json_object(cJSON *o, const char *name, cJSON *member);

/* Prints the object on a line of stdout, and deletes it. */
void oncectl_print_json(cJSON *o);

#endif
