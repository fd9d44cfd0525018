/*
 * Keys as oncectl shows them, and the one key that a command line names.
 */
#ifndef ONCECTL_ROW_H
#define ONCECTL_ROW_H

#include <stdio.h>

#include "oncectl.h"

/* One row: as a line of JSON, as lines of text. */
void oncectl_row_json(const struct store_row *);
void oncectl_row_lines(const struct store_row *);

/* A table for rows of that kind: see oncectl_print_row(). */
struct oncectl_table;
struct oncectl_table *oncectl_row_table(FILE *);

/* "key K of scope S", for a terminal; the caller frees it. */
char *oncectl_row_name(const struct store_row *);

/*
 * The one key that the arguments and options name: -1 and *row, which the
 * caller frees; or the exit status, once it has been said why there is none
 * or that there are several.
 */
int oncectl_row_find(struct oncectl *, struct store_row *row);

/* The same key as it is now; RC_NOTFOUND: it is gone.  On failure *row is
 * empty. */
enum rc oncectl_row_again(struct oncectl *, struct store_row *row);

#endif
