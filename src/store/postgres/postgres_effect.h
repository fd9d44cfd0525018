/*
 * Effects, for recover: in its transaction.
 */
#ifndef POSTGRES_EFFECT_H
#define POSTGRES_EFFECT_H

#include "postgres_impl.h"

/* Sends the statement that makes the effects due again which a lost owner was
 * trying; and reads its result, their number. */
void postgres_effect_free_send(struct pg *pg, int64_t owner);
enum rc postgres_effect_free_read(struct pg *pg, int *n);

#endif
