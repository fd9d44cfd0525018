/*
 * What doctor finds, in the words that every kind of store uses.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store_operator.h"

/* A list with room for max findings; those above are dropped. */
struct findings {
	struct store_finding *item;
	size_t max, n;
};

/* Adds one; ok: the operator need not act. */
void findings_add(struct findings *f, const char *name, bool ok,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * The next functions add a finding about numbers that were counted.  rc: why
 * they could not be; RC_OK if they were.
 */

/* Bodies of answers without a key, and keys without all of their body. */
struct findings_bodies {
	int64_t orphans, missing;
};
void findings_bodies(
    struct findings *f, enum rc rc, const struct findings_bodies *n);

/* Stored requests: kept for keys that are settled or gone; bodies without a
 * request; requests without all of their body; accepted keys without their
 * request; and the error of the count of their bytes. */
struct findings_requests {
	int64_t orphans, pieces, cut, missing, wrong;
};
void findings_requests(
    struct findings *f, enum rc rc, const struct findings_requests *n);

/* Rows that make no sense: findings_row() once for each, then findings_rows().
 * names: of the first ones. */
struct findings_rows {
	int64_t bad;
	char names[160];
	size_t len;
};
void findings_row(struct findings_rows *rows, const char *table, int64_t id);
void
findings_rows(struct findings *f, enum rc rc, const struct findings_rows *rows);

/* Leases and tries of processes that are gone. */
void findings_leases(struct findings *f, enum rc rc, int64_t dead);

/* Keys with an open outcome: without a reconciler, with one, and given up. */
struct findings_open {
	int64_t unattended, waiting, dead;
};
void
findings_open(struct findings *f, enum rc rc, const struct findings_open *n);

/* Effects that are on their way, and those that were given up. */
void
findings_outbox(struct findings *f, enum rc rc, int64_t pending, int64_t dead);

/* Effects without a key; whose key has no turn, or two; without a payload; and
 * payloads too many. */
struct findings_effects {
	int64_t orphans, stalled, missing, payloads;
};
void findings_effects(
    struct findings *f, enum rc rc, const struct findings_effects *n);

/*
 * Pending effects whose topic has no section: findings_topic() once for each
 * topic with its pending effects, then findings_topics().  configured: the
 * store has the topic; conf, if it is not NULL, decides instead.
 */
struct findings_topics {
	int64_t effects;
	char names[128];
	size_t len;
};
void findings_topic(struct findings_topics *t, const struct conf *conf,
    const char *name, int64_t effects, bool configured);
void findings_topics(
    struct findings *f, enum rc rc, const struct findings_topics *t);

#endif
