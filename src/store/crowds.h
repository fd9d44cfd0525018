/*
 * The callers that have keys which limits count, and what a limit that is
 * reached means for them.
 */
#ifndef CROWDS_H
#define CROWDS_H

#include <stddef.h>
#include <stdint.h>

#include "conf.h"
#include "findings.h"
#include "refused.h"

/* What is counted: keys with an open outcome, for max_open_keys; keys in
 * progress, for max_active_keys; keys that wait, for async_queue. */
enum crowds_of { CROWDS_OPEN, CROWDS_ACTIVE, CROWDS_QUEUED, CROWDS_NOF };

#define CROWDS_MAX 64

struct crowd {
	int64_t caller;            /* its number: see caller.h */
	int64_t keys;              /* that are counted */
	char *path, *scope, *peer; /* of one of them; peer may be NULL */
};

struct crowds {
	enum crowds_of of;
	int64_t after; /* callers with a higher number */
	int64_t most;  /* keys of a caller that are counted */
	struct crowd item[CROWDS_MAX];
	size_t n; /* fewer than CROWDS_MAX: there are no more */
};

/*
 * Finds the next callers, in the order of their numbers, and sets c->after to
 * the last one.  An index is read, CROWDS_MAX * most entries of it at most.
 * crowds_clear() frees the items, before the next call too.
 */
enum rc store_crowds(struct store *s, struct crowds *c);
void crowds_clear(struct crowds *c);

/*
 * Finds callers that max_open_keys keeps from new keys, whether a request of
 * theirs has been refused or not.  Each is a line of refused.h.  At most
 * CROWDS_MAX callers are looked at, the next ones by each call, so that the
 * costs are bounded.  Returns the number of lines.
 */
size_t crowds_open(struct store *s, const struct conf *conf,
    char lines[CROWDS_MAX][REFUSED_LINE]);

/* Adds what limits refuse now, and to whom.  conf: NULL if it is not known. */
void
crowds_doctor(struct store *s, const struct conf *conf, struct findings *f);

#endif
