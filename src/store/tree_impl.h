/*
 * Files of the folder "<database>-attempts", for tree.c and tree_process.c
 * alone.
 */
#ifndef TREE_IMPL_H
#define TREE_IMPL_H

#include "tree.h"

#define TREE_NAME_LEN 16 /* hexadecimal digits */

/* What follows the name: see tree.h. */
#define TREE_OF_PROCESS ".process"
#define TREE_OF_BY      ".by"
#define TREE_FILE_LEN   (TREE_NAME_LEN + sizeof(TREE_OF_PROCESS))

/* Logs errno; returns RC_FULL or RC_IO. */
enum rc tree_failed(const char *database, const char *what);

/* Opens the folder, and creates it if asked; -1 and errno. */
int tree_open_folder(const char *database, bool make);

/* The file's name. */
void tree_text_of(int64_t name, const char *kind, char text[TREE_FILE_LEN]);

void tree_close_both(int *held, int *note);

/* Creates a file of that kind: see tree_new(). */
enum rc tree_new_file(const char *database, int64_t owner, const char *kind,
    int *held, int *note, int64_t *name);
void tree_remove_file(const char *database, int64_t name, const char *kind);

/* tree_each() for files of that kind. */
enum rc tree_each_of(const char *database, const char *kind,
    enum rc (*visit)(void *, int64_t name, const struct tree_note *), void *);

#endif
