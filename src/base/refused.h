/*
 * What is refused now, and to whom: by which limits in the last minute.  It is
 * of this process only, and bounded: of more than REFUSED_MAX callers at once
 * those that were refused last are known.
 */
#ifndef REFUSED_H
#define REFUSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REFUSED_MAX 64

/* "too-many-keys route=/pay caller=192.0.2.7", "overloaded max_store" */
#define REFUSED_LINE 256

/* Makes the line of a caller that has too many keys on that route. */
void
refused_too_many(const char *route, const char *caller, char out[REFUSED_LINE]);

/* A limit refused a request; it is logged, once a minute at most.  route and
 * caller: NULL if the limit is one for all. */
void refused_note(const char *code, const char *limit, const char *route,
    const char *caller, int64_t now_mono);

/* Whether anything was noted that refused_over() may forget.  Cheap. */
bool refused_any(void);

/* A new key of that caller on that route was taken: limits for all, and those
 * for it, refuse nothing now, but for one that refuses again and again, such as
 * key_rate. */
void refused_over(const char *route, const char *caller);

/* Puts the i-th of them into out; false: there are no more. */
bool refused_line(size_t i, int64_t now_mono, char out[REFUSED_LINE]);

#endif
