/*
 * One attempt at a key, run by the request that holds its lease:
 *
 * 	attempt_run -> attempt_judge -> attempt_complete
 *
 * Each stage adds its part to struct attempt.  The response exists only after
 * the last stage, when the outcome is durable.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "cgihead.h"
#include "conf.h"
#include "outcome.h"
#include "request.h"
#include "store.h"

struct attempt {
	/* set by the caller; borrowed */
	struct store *store;
	const struct conf *conf;
	const struct conf_route *rule;
	const struct request *rq;
	const char *key, *scope;
	struct store_lease lease;
	/* from attempt_prepare() */
	/* .lock is 0 unless on_crash = resume, or there is a reconciler */
	struct store_attempt held;
	struct buf environment; /* of the request, if it is to be stored */
	struct store_outcome *record; /* what attempt_complete() writes */
	struct spool *output;
	struct buf errors; /* the end of its stderr */
	/* from attempt_run() */
	struct outcome_facts facts;
	/* from attempt_judge() */
	struct cgihead head;
	struct response response; /* its body is in output */
	struct outcome outcome;
	/* from attempt_complete(), which corrects outcome if the handler has
	 * stored its response in a transaction of its own */
	bool answered;
	bool lock_named;    /* a record names .held, or may name it */
	enum rc recorded;   /* RC_OK, or why the outcome is not durable */
	int64_t expires_at; /* of the key, store time */
};

/* The caller fills in the borrowed part. */
void attempt_init(struct attempt *at);

/* Adds the route's terms of the attempt, and of the time after it, to the
 * reservation. */
void attempt_terms(const struct conf_route *rule, struct store_reservation *rv);

/*
 * Before the lease is taken: allocates what must not be missing later.  It may
 * be called again.  RC_OK, or the reason why no attempt is possible now.
 */
enum rc attempt_prepare(struct attempt *at, struct store_reservation *rv);

/* Adds the request to the reservation, for a worker that runs it later, or for
 * a reconciler.  It may be called again. */
enum rc attempt_keep_request(struct attempt *at, struct store_reservation *rv);

void attempt_free(struct attempt *at);

/* The part of attempt_prepare() that needs no reservation: record and
 * output.  False: no memory. */
bool attempt_alloc(struct attempt *at);

/* Runs a program with the attempt's variables to its end, and captures its
 * output.  False: the program was not started. */
bool attempt_start(struct attempt *at, const struct conf_program *program);

/* Reads the program's output: head, response, and the facts about it. */
void attempt_read(struct attempt *at);

/*
 * Puts the response for retries into the record, without the fields that
 * are not replayed.  If there is no memory for a copy of its head, the response
 * is not stored, but the key still completes.
 */
void attempt_keep(struct attempt *at);

/* Runs the handler to its end and captures its output. */
void attempt_run(struct attempt *at);

/* Reads the handler's output and end, and decides the outcome. */
void attempt_judge(struct attempt *at);

/* Makes the outcome durable, and logs it. */
void attempt_complete(struct attempt *at);

#endif
