/*
 * One attempt at a key, run by the request that holds its lease:
 *
 *	attempt_run -> attempt_judge -> attempt_complete
 *
 * Each of them adds its part to struct attempt.  The response exists only after
 * the last one, when the outcome is durable.  The first and the last one wait
 * for the program and for the store.  A loop does instead what they consist of:
 *
 *	attempt_begin, attempt_start; once the run is reached, attempt_name and
 *	run_send; attempt_output; attempt_ran; attempt_left
 *	attempt_settle, store_call_finish, attempt_settled
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "cgihead.h"
#include "conf.h"
#include "log.h"
#include "outcome.h"
#include "request.h"
#include "run.h"
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
	/* from attempt_start() on */
	struct run *run;
	struct outcome_facts facts;
	enum rc captured; /* RC_OK, or why the output is not whole */
	bool shares;      /* store_share_begin() was called */
	int64_t until;    /* mono: the end of attempt_left() */
	int pause;        /* before its next look (ms) */
	bool left_told;   /* it was logged */
	bool hurries;     /* all handlers are being ended */
	/* from attempt_judge() */
	struct cgihead head;
	struct response response; /* its body is in output */
	struct outcome outcome;
	/* from attempt_complete(), which corrects outcome if the handler has
	 * stored its response in a transaction of its own */
	bool answered;
	bool lock_named;  /* a record names .held, or may name it */
	enum rc recorded; /* RC_OK, or why the outcome is not durable */
	struct store_finished done;
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

/* Adds the request to the reservation, for the runner, which runs it later, or
 * for a reconciler.  It may be called again. */
enum rc attempt_keep_request(struct attempt *at, struct store_reservation *rv);

/*
 * An attempt of a stored request, for a program that runs without a client.  It
 * has no credentials, and the name in the log that it had when it came.
 */
struct attempt_request {
	struct record key; /* the caller reads it */
	struct attempt attempt;
	struct request rq;
	struct log_request log;
	struct buf text; /* names and values */
	struct param *params;
	struct spool *body;
};

/* Allocates it; NULL: no memory. */
struct attempt_request *
attempt_request_new(struct store *store, const struct conf *conf);
void attempt_request_free(struct attempt_request *stored);

/* Once .key was read: fills in the rest of what the attempt borrows, but for
 * the request. */
void attempt_request_begin(struct attempt_request *stored);

/*
 * Reads the stored request of the key.  RC_NOTFOUND: the key has none.
 * RC_CORRUPT: it is not a request.  Other values: the store failed.  On failure
 * rq has only its path and its name in the log.
 */
enum rc attempt_request_load(struct attempt_request *stored);

void attempt_free(struct attempt *at);

/* The part of attempt_prepare() that needs no reservation: record and
 * output.  False: no memory. */
bool attempt_alloc(struct attempt *at);

/* Before the route's handler is started. */
void attempt_begin(struct attempt *at);

/* Starts a program with the attempt's variables: .run.  False: it was not
 * started.  It may wait. */
bool attempt_start(struct attempt *at, const struct conf_program *program);

/* Once it is reached: says which processes act for the attempt.  False: that
 * failed, so the run is to be cancelled.  It may wait if
 * attempt_has_files(). */
bool attempt_name(struct attempt *at);
bool attempt_has_files(const struct attempt *at);

/* Stores some of the run's output; it may wait if the output is in a
 * file.  Then, in the thread of the run: ends a run whose output could not be
 * stored. */
void attempt_output(struct attempt *at, const void *bytes, size_t n);
void attempt_check_output(struct attempt *at);

/* The run is over: gets its facts, and frees it. */
void attempt_ran(struct attempt *at);

/* A part of that: its program uses the database no more. */
void attempt_unshare(struct attempt *at);

/*
 * Looks for processes that a lost handler has left behind, until the attempt's
 * deadline; reads the list of all processes.  Returns 0, or the pause (ms)
 * until the next look.
 */
int attempt_left(struct attempt *at);

/* attempt_start() to attempt_ran(), for a thread that may wait; attempt_run()
 * is that with the route's handler, and attempt_left().  False: the program was
 * not started. */
bool attempt_capture(struct attempt *at, const struct conf_program *program);

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

/* Makes the outcome durable, and logs it: attempt_settle(), store_finish(),
 * attempt_settled(). */
void attempt_complete(struct attempt *at);

/* Puts the outcome into .record, for store_finish(). */
void attempt_settle(struct attempt *at);

/* store_finish() has returned .recorded, and filled in .done.  It may wait if
 * attempt_has_files(). */
void attempt_settled(struct attempt *at);

#endif
