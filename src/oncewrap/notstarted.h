/*
 * The error that ends a start.
 */
#ifndef NOTSTARTED_H
#define NOTSTARTED_H

#include <stdbool.h>
#include <stddef.h>

/* Logs why there is no daemon. */
void notstarted_say(const char *error);

/* The same where files, folders and owners may be the cause: check, a function
 * of world.h, finds the cure.  name may be NULL. */
void notstarted_explain(const char *error,
    bool (*check)(const char *, char *, size_t), const char *name);

#endif
