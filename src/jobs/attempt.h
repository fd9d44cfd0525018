/*
 * One attempt at a key, by the request that holds its lease:
 *
 *	attempt_run -> attempt_judge -> attempt_complete
 *
 * Each stage adds its part to struct attempt; the answer exists only after
 * the last one, when the outcome is durable.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "cgihead.h"
#include "conf.h"
#include "outcome.h"
#include "request.h"
#include "store.h"

struct attempt {
	/* given; borrowed */
	struct store *store;
	const struct conf *conf;
	const struct conf_route *rule;
	const struct request *rq;
	const char *key, *scope;
	struct store_lease lease;
	/* from attempt_prepare() */
	/* .lock is 0 unless on_crash = resume, or there is a reconciler */
	struct store_attempt tree;
	struct buf environment; /* of the request, if it is to be kept */
	struct store_settlement *settlement;
	struct spool *output;
	/* from attempt_run() */
	struct outcome_facts facts;
	/* from attempt_judge() */
	struct cgihead head;
	struct response response; /* its body is in output */
	struct outcome outcome;
	/* from attempt_complete(), which corrects outcome if the handler has
	 * answered in a transaction of its own */
	bool answered;
	bool tree_named;    /* a record names .tree, or may do so */
	enum rc recorded;   /* RC_OK, or why the outcome is not */
	int64_t expires_at; /* of the key, store time */
};

/* The given part is the caller's to fill in. */
void attempt_init(struct attempt *);

/* What the route says of the attempt and of the time after it, added to the
 * reservation. */
void attempt_terms(const struct conf_route *, struct store_reservation *);

/*
 * Before the lease is taken: gets all that may be missing later.  May be called
 * again.  RC_OK, or why there can be no attempt now.
 */
enum rc attempt_prepare(struct attempt *, struct store_reservation *);

/* Adds the request to the reservation, for who runs it later, or finds out
 * what became of it.  May be called again. */
enum rc attempt_keep_request(struct attempt *, struct store_reservation *);

void attempt_free(struct attempt *);

/* The part of attempt_prepare() that needs no reservation: settlement and
 * output.  False: no memory. */
bool attempt_alloc(struct attempt *);

/* Runs a program with the attempt's variables to its end, and captures its
 * output.  False: it was not started. */
bool attempt_start(struct attempt *, const struct conf_list *program);

/* What the program wrote: head, response, and the facts about it. */
void attempt_read(struct attempt *);

/*
 * What a retry will get, into the settlement: the response without what is
 * not replayed.  If there is no memory for a copy of its head, it is not kept,
 * but still completed.
 */
void attempt_keep(struct attempt *);

/* Runs the handler to its end and captures its output. */
void attempt_run(struct attempt *);

/* What it wrote and how it ended, and what that makes of the key. */
void attempt_judge(struct attempt *);

/* Makes the outcome durable, and logs it. */
void attempt_complete(struct attempt *);

#endif
