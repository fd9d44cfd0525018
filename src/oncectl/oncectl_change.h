/*
 * What an operator's change of a key did, and why it was refused.
 */
#ifndef ONCECTL_CHANGE_H
#define ONCECTL_CHANGE_H

#include "oncectl.h"

/* Prints "key K of scope S: was -> text", or an object; to is the new state,
 * RECORD_NONE for a key that is deleted. */
void oncectl_change_print(const struct oncectl *ctl, const struct record *row,
    const char *text, enum record_state to);

/*
 * The store refused a change: another process has changed the key first, or a
 * lease holds it.  Reads the row again and calls refuse() with it and with its
 * state before, to say why not; returns the exit status.
 */
int oncectl_change_lost(struct oncectl *ctl, struct record *row,
    int (*refuse)(const struct record *, enum record_state before));

/* Says why a change failed, and whether it may have been made all the same;
 * returns the exit status.  where: the command that tells. */
int
oncectl_change_failed(const struct oncectl *ctl, enum rc rc, const char *where);

#endif
