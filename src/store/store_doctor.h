/*
 * What doctor finds, in the words that every kind of store uses; and callers at
 * their limits.
 */
#ifndef STORE_DOCTOR_H
#define STORE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf.h"
#include "recent.h"
#include "store_operator.h"

/* A list with room for max findings; those above are dropped. */
struct findings {
	struct store_finding *item;
	size_t max, n;
};

/* Adds one; ok: the operator need not act. */
void store_doctor_add(struct findings *f, const char *name, bool ok,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds a name to a text of that size, if it has room. */
void store_doctor_name(char *names, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts the leases, and tries of effects, of processes that are gone. */
enum rc store_doctor_dead(struct store *s, int64_t *dead);

/* Adds what was counted: leases and tries of processes that are gone.  rc: why
 * they could not be; RC_OK if they were. */
void store_doctor_leases(struct findings *f, enum rc rc, int64_t dead);

/* --- callers at their limits ---------------------------------------------- */

#define STORE_CALLERS_MAX 64 /* callers that one read gives */

/*
 * Finds callers that max_open_keys keeps from new keys, whether a request of
 * theirs has been refused or not.  Each is a line of recent.h.  At most
 * STORE_CALLERS_MAX callers are looked at, the next ones by each call, so that
 * the costs are bounded.  Returns the number of lines.
 */
size_t store_callers_full(struct store *s, const struct conf *conf,
    char lines[STORE_CALLERS_MAX][RECENT_LINE]);

/* Adds what limits refuse now, and to whom.  conf: NULL if it is not known. */
void store_callers_doctor(
    struct store *s, const struct conf *conf, struct findings *f);

#endif
