/*
 * The processes of attempts that this host has started, for recover.
 */
#ifndef POSTGRES_ATTEMPT_H
#define POSTGRES_ATTEMPT_H

#include "postgres_impl.h"

/* Sends the statement that releases the key of a lost attempt with that
 * token; a worker runs an accepted key again. */
void postgres_release_send(
    struct pg *pg, const struct record *lost, const char *token);

/*
 * Releases keys that another host has made unknown on a suspicion, if they may
 * be resumed, and this host knows more: their oncewrap is dead, and all
 * processes of the attempt have exited.  The changes are added to those that
 * are there.
 */
enum rc postgres_recover_late(
    struct store *s, int limit, struct store_change *changes, int *n);

/* Removes the files of attempts that no record names. */
enum rc postgres_attempt_clean(struct store *s);

#endif
