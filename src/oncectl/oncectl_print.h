/*
 * How oncectl prints: tables for people, one JSON object a line for programs.
 * When there is no memory left, it says so and exits with status 1.
 */
#ifndef ONCECTL_PRINT_H
#define ONCECTL_PRINT_H

#include <stdint.h>
#include <stdio.h>

#include <cJSON.h>

/*
 * Text for a terminal: what is not printable in the locale becomes \xNN, a
 * backslash two.  The caller frees it.
 */
char *oncectl_print_escaped(const char *);

/* A time of the wall clock, ms, as RFC 3339 to the second; "-" for 0. */
#define ONCECTL_PRINT_TIME 32
const char *oncectl_print_time(int64_t wall, char out[ONCECTL_PRINT_TIME]);

/*
 * Rows of cells in columns that are as wide as their widest cell so far.
 * titles must outlive the table; cells are copied, NULL is "-".  Memory is
 * bounded however many rows there are.  free prints what is left; a table
 * without rows prints nothing.
 */
struct oncectl_table;
struct oncectl_table *
oncectl_print_table(FILE *, const char *const *titles, size_t columns);
void oncectl_print_row(struct oncectl_table *, const char *const *cells);
void oncectl_print_table_free(struct oncectl_table *);

/* Members of an object.  text NULL and time 0 are null; bytes that are no
 * UTF-8 become U+FFFD. */
cJSON *oncectl_print_object(void);
void oncectl_print_json_text(cJSON *, const char *name, const char *text);
void oncectl_print_json_number(cJSON *, const char *name, int64_t);
void oncectl_print_json_bool(cJSON *, const char *name, int);
void oncectl_print_json_null(cJSON *, const char *name);
void oncectl_print_json_time(cJSON *, const char *name, int64_t wall);
void oncectl_print_json_object(cJSON *, const char *name, cJSON *member);

/* Prints it on a line of stdout, and deletes it. */
void oncectl_print_json(cJSON *);

#endif
