/*
 * Keys as oncectl shows them, and the one key that a command line names.
 */
#ifndef ONCECTL_ROW_H
#define ONCECTL_ROW_H

#include <stdio.h>

#include "oncectl.h"
#include "oncectl_print.h"

/* One row as an object for oncectl_print_json(), or as lines of text, which are
 * printed. */
cJSON *oncectl_row_object(const struct oncectl *ctl, const struct record *r);
void oncectl_row_lines(const struct oncectl *ctl, const struct record *r);

/* Makes a table for such rows, and prints one: see oncectl_print_table(). */
struct oncectl_table;
struct oncectl_table *oncectl_row_table(FILE *file);
void oncectl_row_print(const struct oncectl *ctl, struct oncectl_table *table,
    const struct record *r);

/* "key K of scope S", for a terminal; the caller frees it. */
char *oncectl_row_name(const struct record *r);

/* Whether the arguments and options name one key. */
bool oncectl_row_is_named(const struct oncectl *ctl);

/*
 * Finds the one key that the arguments and options name.  Returns -1 and *row,
 * which the caller frees, or the exit status, after printing that there is no
 * such key or that there are several.
 */
int oncectl_row_find(struct oncectl *ctl, struct record *row);

/* Reads the same key again.  RC_NOTFOUND: it is gone.  On failure *row is
 * empty. */
enum rc oncectl_row_again(struct oncectl *ctl, struct record *row);

#endif
