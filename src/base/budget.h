/*
 * A number of bytes that threads share: each takes what it is going to need,
 * and waits in turn while others have it.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "rc.h"

struct budget;

/* NULL when there is no memory. */
struct budget *budget_new(size_t total);
void budget_free(struct budget *); /* all was given back */

/* Takes n bytes, at most the total, if they are to be had at once and no other
 * thread waits for any. */
bool budget_try(struct budget *, size_t n);

/* Takes n bytes, at most the total, once the threads that asked before have
 * theirs. */
void budget_take(struct budget *, size_t n);

void budget_give(struct budget *, size_t n);

#endif
