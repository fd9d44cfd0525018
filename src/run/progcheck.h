/*
 * Why the kernel would not run a program: for -t, and for the log where a start
 * has failed.
 */
#ifndef PROGCHECK_H
#define PROGCHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "user.h"

/*
 * Looks at the program and at the interpreter that its first line names.  as:
 * the user that it will run as; NULL: this process's own.  False: it cannot be
 * run, and why is a sentence that names the file, the cause and the cure.
 */
bool progcheck(const char *path, const struct user *as, char *why, size_t size);

/* The same for the folder that a program starts in. */
bool progcheck_folder(
    const char *path, const struct user *as, char *why, size_t size);

/* Whether the user may use a file or folder: mode is a sum of R_OK, W_OK and
 * X_OK.  Only the mode bits count, no access control lists.  NULL: this
 * process's own user, for which the kernel is asked. */
bool progcheck_may(const char *path, const struct user *as, int mode);

/* Sets why, cut to its size, and returns false. */
bool progcheck_fail(char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
