/*
 * A number of bytes that threads share.  A thread takes the bytes that it is
 * going to need.  While too few are left, it waits, in order of arrival, but no
 * caller is served twice while a thread of another one waits.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rc.h"

struct budget;

/* waits: how many threads of one caller may wait at once.  budget_new() returns
 * NULL when there is no memory. */
struct budget *budget_new(size_t total, unsigned waits);
void budget_free(struct budget *b); /* all bytes are given back */

/*
 * Takes n bytes, at most the total, after the threads that asked earlier have
 * theirs.  A thread that has to wait hands the lead on first.  False: nothing
 * was taken until until_mono, a reading of clock_mono() (ms), or as many
 * threads of that caller wait as may; until_mono 0: the call does not wait, and
 * caller may be 0.
 */
bool
budget_take(struct budget *b, size_t n, int64_t caller, int64_t until_mono);

void budget_give(struct budget *b, size_t n);

/* Ends all waits, those of later calls too. */
void budget_stop_waiting(struct budget *b);

#endif
