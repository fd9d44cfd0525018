/*
 * Private to the files of the request path.
 */
#ifndef ENGINE_IMPL_H
#define ENGINE_IMPL_H

#include <stdatomic.h>

#include "attempt.h"
#include "budget.h"
#include "caller.h"
#include "json.h"
#include "key.h"
#include "route.h"
#include "rate.h"

/* A key in progress with a dead owner that could not be recovered yet, and the
 * time of the next try. */
struct engine_recovery {
	_Atomic int64_t id, again_mono;
};
#define ENGINE_RECOVERIES 64

struct engine {
	struct store *store;
	struct rate *rate; /* of new keys, by caller */
	/* memory for comparing JSON, of large and of small bodies */
	struct budget *large_json, *small_json;
	atomic_uint waiting; /* requests that hold a worker for another one */
	unsigned max_waiting;
	struct engine_recovery recovery[ENGINE_RECOVERIES];
	atomic_bool draining; /* engine_drain() was called */
};

struct job {
	struct engine *engine;
	const struct conf *conf;
	struct request *rq;
	const struct conf_route *rule;
	struct answer *answer;
	bool later; /* accepted now, run later */
	/* from engine_find_key() and the checks */
	bool searched; /* for the key, with this result: */
	enum rc search_rc;
	enum key_verdict verdict;
	const struct conf_source *source; /* where it is, or NULL: a pair */
	struct key key;
	/* from engine_read_json() to engine_drop_json() */
	bool json_known;
	struct json *json; /* the body, or NULL: it is not I-JSON */
	size_t json_cost;  /* what is taken of the budget */
	bool json_refused; /* other requests have all of the budget */
	enum rc scope_rc;  /* of engine_make_scope() */
	bool scope_empty;
	struct buf scope, fingerprint_spec;
	char cookie[RECORD_UUID_LEN + 1]; /* reservation.cookie */
	struct store_reservation reservation;
	/* from engine_reserve(): the record that keeps the request from
	 * running; or the attempt's lease, or a place in the queue */
	struct record record;
	struct store_inline_answer inline_answer;
	bool again;        /* the key was released before */
	bool acted_before; /* an earlier attempt of the key may have acted */
	/* that, or the queue will run it; true as long as the record has not
	 * been read: no new key is safe */
	bool may_have_acted;
	int attempts;  /* of the key, when its record was read */
	bool counted;  /* counted as a new key of its caller */
	bool too_fast; /* DECIDE_CROWDED: too many new keys in a second */
	enum age age;  /* of a request that would run */
	struct attempt attempt;
	struct store_ticket ticket;
};

/* For use as `return engine_refuse(...)`: it returns false, the result of a
 * failed check.  detail NULL: the sentence of the code. */
bool engine_refuse(struct job *job, enum problem_code code, const char *detail);
bool engine_refusef(struct job *job, enum problem_code code, const char *format,
    ...) __attribute__((format(printf, 3, 4)));
bool engine_refuse_store(struct job *job, enum rc rc);
/* The key was used for a different request. */
bool engine_refuse_reused(struct job *job);

/* One more request is about to hold a worker until another request goes on.
 * False: half of the workers wait already. */
bool engine_begin_waiting(struct engine *engine);
void engine_end_waiting(struct engine *engine);

/*
 * Reads the body as JSON, once.  Waits, within busy_timeout, while other
 * requests use the memory.  RC_OK, RC_NOMEM, RC_IO; RC_LIMIT: they still do.
 * drop: the memory goes to other requests, so this is called before the request
 * waits for anything else.
 */
enum rc engine_read_json(struct job *job);
void engine_drop_json(struct job *job);

/* Notes what limit refuses the request, and to whom; of_all: to everyone. */
void engine_note_refused(
    struct job *job, enum problem_code code, const char *limit, bool of_all);

/* Looks for the key, once.  RC_OK, with the result in the job; or a
 * failure of engine_read_json(). */
enum rc engine_find_key(struct job *job);

/*
 * These come before the checks, so that the log's line of a refusal has the
 * scope and the key as well.  make_scope: its result is for
 * engine_check_scope().  note_key: a key that only the body has is found if the
 * whole body is there.  make_reference: if there are a scope and a key, the
 * request's instance is its Reference from now on, in log, answers and store.
 */
void engine_make_scope(struct job *job);
void engine_note_key(struct job *job);
void engine_make_reference(struct job *job);

/* Of a request that does not come to its reservation: clears may_have_acted if
 * its key can be found without the body, and has no record. */
void engine_note_unused(struct job *job);

/*
 * The checks of a guarded request, in this order; false: it was refused.
 *
 * body: the whole body arrived, and there is room for it.  size: it is not
 * longer than allowed, and fits into the store, if it must be stored.  key:
 * there is exactly one, and it is well-formed.  scope: identifies the caller.
 */
bool engine_check_body(struct job *job);
bool engine_check_size(struct job *job);
bool engine_check_key(struct job *job);
bool engine_check_scope(struct job *job);
bool engine_take_fingerprint(struct job *job);

/* Whether the key, or a part of it, came from a form or a query: a page that
 * another wrote may have it. */
bool engine_key_is_of_page(const struct job *job);

/* Makes the reservation's fingerprint by that spec.  RC_OK, RC_VERSION, or a
 * failure of engine_read_json(). */
enum rc engine_fingerprint(struct job *job, const char *fingerprint_spec);

/*
 * Wins the reservation, or finds the decision against it.  Waits for a run
 * under way if the route says so.  False: the store failed, its queue is full,
 * or decide_is_limit(); the refusal is in the answer.
 */
bool engine_reserve(struct job *job, enum decision *decision);

#endif
