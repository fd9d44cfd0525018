/*
 * Reserve and accept, for callers that wait: oncewrap itself calls them by
 * store_call.h.  Included by tests and benchmarks only.
 */
#ifndef STORE_ADMITS_H
#define STORE_ADMITS_H

#include "store_admit.h"

static inline enum rc
store_admits(struct store *s, struct store_asked asked, enum decision *decision)
{
	struct store_admission a = { .asked = asked };

	a.asked.decision = decision;
	store_admission_begin(&a);
	return store_admission_end(&a, store_admit_do(s, &a.admit));
}

static inline enum rc
store_reserve(struct store *s, const struct store_reservation *what,
    struct store_lease *lease, enum decision *decision, struct record *found)
{
	return store_admits(s,
	    (struct store_asked){
		.what = what, .lease = lease, .found = found },
	    decision);
}

static inline enum rc
store_accept(struct store *s, const struct store_reservation *what,
    unsigned max_queue, struct store_ticket *ticket, enum decision *decision,
    struct record *found)
{
	return store_admits(s,
	    (struct store_asked){ .what = what,
		.ticket = ticket,
		.max_queue = max_queue,
		.found = found },
	    decision);
}

#endif
