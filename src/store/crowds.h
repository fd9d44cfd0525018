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

#define CROWDS_MAX 64 /* callers that one read gives */

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
