/*
 * Files of the folder "<database>-attempts", for the attempt_lock files alone.
 */
#ifndef ATTEMPT_LOCK_IMPL_H
#define ATTEMPT_LOCK_IMPL_H

#include "attempt_lock.h"

#define ATTEMPT_LOCK_NAME_LEN 16 /* hexadecimal digits */

/* What follows the name: see attempt_lock.h. */
#define ATTEMPT_LOCK_OF_PROCESS ".process"
#define ATTEMPT_LOCK_OF_BY      ".by"
#define ATTEMPT_LOCK_FILE_LEN \
	(ATTEMPT_LOCK_NAME_LEN + sizeof(ATTEMPT_LOCK_OF_PROCESS))

/* Logs errno; returns RC_FULL or RC_IO. */
enum rc attempt_lock_failed(const char *database, const char *what);

/* Opens the folder, and creates it if asked; -1 and errno. */
int attempt_lock_open_folder(const char *database, bool make);

/* The file's name; and the number that such a name stands for, <= 0 if the file
 * is not ours. */
void attempt_lock_text_of(
    int64_t name, const char *kind, char text[ATTEMPT_LOCK_FILE_LEN]);
int64_t attempt_lock_name_of(const char *text, const char *kind);

/* A name of this boot, drawn at random; 0 and errno. */
int64_t attempt_lock_new_name(void);

void attempt_lock_close_both(int *held, int *note);

/* Creates a file of that kind: see attempt_lock_new(). */
enum rc attempt_lock_new_file(const char *database, int64_t owner,
    const char *kind, int *held, int *note, int64_t *name);
void
attempt_lock_remove_file(const char *database, int64_t name, const char *kind);

/* attempt_lock_each() for files of that kind. */
enum rc attempt_lock_each_of(const char *database, const char *kind,
    enum rc (*visit)(void *, int64_t name, const struct attempt_lock_note *),
    void *arg);

#endif
