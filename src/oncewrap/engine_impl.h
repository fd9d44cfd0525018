/*
 * What the files of the request path share; nobody else includes it.
 */
#ifndef ENGINE_IMPL_H
#define ENGINE_IMPL_H

#include <stdatomic.h>

#include "attempt.h"
#include "budget.h"
#include "key.h"
#include "rate.h"
#include "engine.h"

/* A key that was found in progress, its owner gone, and could not be settled
 * yet: it is not tried again before that time. */
struct engine_recovery {
	_Atomic int64_t id, again_mono;
};
#define ENGINE_RECOVERIES 64

struct engine {
	struct store *store;
	struct rate *rate;          /* of new keys, by route and scope */
	struct budget *comparisons; /* memory that fingerprints need */
	atomic_uint waiting; /* requests that hold a worker for another one */
	unsigned max_waiting;
	struct engine_recovery recovery[ENGINE_RECOVERIES];
	atomic_bool hurry; /* nobody waits any more */
};

struct job {
	struct engine *engine;
	const struct conf *conf;
	const struct request *rq;
	const struct conf_route *rule;
	struct answer *answer;
	bool later; /* to be accepted now, and run later */
	/* from identify() and take_fingerprint() */
	struct key key;
	struct buf scope, recipe;
	struct store_reservation reservation;
	/* from reserve(): what stands in the way; or the attempt's lease, or a
	 * place in the queue */
	struct record record;
	struct store_small small;
	bool again;    /* it was released before */
	bool counted;  /* as a new key of its scope */
	bool too_fast; /* DECIDE_CROWDED: too many of them in a second */
	struct attempt attempt;
	struct store_ticket ticket;
};

/* For use as `return engine_refuse(...)`: a step that refuses is false.  detail
 * NULL: the sentence of the code. */
bool engine_refuse(struct job *, enum problem_code, const char *detail);
bool engine_refuse_store(struct job *, enum rc);

/*
 * The steps of a guarded request, in this order; false: it was refused.
 *
 * body: all of it arrived, and there is room for it.  kept_body: it fits into
 * the store, where it has to be kept.  key: exactly one that is
 * well-formed.  scope: the caller.  age: not a retry of long ago, whose key
 * may have been deleted since.
 */
bool engine_check_body(struct job *);
bool engine_check_kept_body(struct job *);
bool engine_check_key(struct job *);
bool engine_check_scope(struct job *);
bool engine_check_age(struct job *);
bool engine_take_fingerprint(struct job *);

/* Makes the reservation's fingerprint by that recipe; waits while others need
 * the memory. */
enum rc engine_fingerprint(struct job *, const char *recipe);

/*
 * Wins the reservation, or finds what stands in its way; waits for a run under
 * way if the route says so.  False: the store failed, its queue is full, or the
 * caller has too many keys, and that is answered.
 */
bool engine_reserve(struct job *, enum decision *);

#endif
