/*
 * Keys as oncectl shows them, and the one key that a command line names.
 */
#ifndef ONCECTL_ROW_H
#define ONCECTL_ROW_H

#include <stdio.h>

#include "oncectl.h"

/* Print one row: as a line of JSON, or as lines of text. */
void oncectl_row_json(const struct store_row *);
void oncectl_row_lines(const struct store_row *);

/* Makes a table for such rows: see oncectl_print_row(). */
struct oncectl_table;
struct oncectl_table *oncectl_row_table(FILE *);

/* "key K of scope S", for a terminal; the caller frees it. */
char *oncectl_row_name(const struct store_row *);

/*
 * Finds the one key that the arguments and options name.  Returns -1 and *row,
 * which the caller frees, or the exit status, after printing that there is no
 * such key or that there are several.
 */
int oncectl_row_find(struct oncectl *, struct store_row *row);

/* Reads the same key again.  RC_NOTFOUND: it is gone.  On failure *row is
 * empty. */
enum rc oncectl_row_again(struct oncectl *, struct store_row *row);

#endif
