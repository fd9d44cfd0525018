/*
 * A number of bytes that threads share.  A thread takes the bytes that it is
 * going to need; while too few are left, it waits, in order of arrival.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stddef.h>

#include "rc.h"

struct budget;

/* budget_new() returns NULL when there is no memory. */
struct budget *budget_new(size_t total);
void budget_free(struct budget *b); /* all bytes are given back */

/* Takes n bytes, at most the total, after the threads that asked earlier have
 * theirs.  A thread that has to wait hands the lead on first. */
void budget_take(struct budget *b, size_t n);

void budget_give(struct budget *b, size_t n);

#endif
