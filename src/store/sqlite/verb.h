/*
 * What the verbs that write share: changes of exactly one row, and the words
 * and numbers that they write.
 */
#ifndef VERB_H
#define VERB_H

#include "conf.h"
#include "db.h"
#include "record.h"
#include "store.h"

/* Steps a statement that changes one row; returns lost if it changed none. */
enum rc verb_change_one(struct db_stmt *s, enum rc lost);

/*
 * The same for a change of state, which record.c's table must allow;
 * RC_INVALID: it does not.  RECORD_NONE is the state before an insertion, and
 * after a deletion.
 */
enum rc verb_change_state(struct db_stmt *s, enum record_state from,
    enum record_state to, enum rc lost);

/* The words in the columns of these names; NULL is the default. */
const char *verb_on_crash(enum conf_on_crash on_crash);
const char *verb_on_expired(enum conf_on_expired on_expired);

#endif
