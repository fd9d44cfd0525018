/*
 * A number of bytes that threads share: each takes what it is going to need,
 * and waits in turn while others have it.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stddef.h>

#include "rc.h"

struct budget;

/* NULL when there is no memory. */
struct budget *budget_new(size_t total);
void budget_free(struct budget *); /* all was given back */

/* Takes n bytes, at most the total, once the threads that asked before have
 * theirs.  A thread that has to wait hands the lead on first. */
void budget_take(struct budget *, size_t n);

void budget_give(struct budget *, size_t n);

#endif
