/*
 * What an operator can say of a key whose outcome is open: the rules of oncectl
 * and of the operator's page.  The store alone decides, in the transaction that
 * makes the change.
 */
#ifndef RESOLVE_H
#define RESOLVE_H

#include "cgihead.h"
#include "conf.h"
#include "store_operator.h"

/* Room for the reason of a refusal. */
#define RESOLVE_WHY 160

/* Why a key in that state cannot be resolved; NULL: it can. */
const char *resolve_refusal(enum record_state state);

/*
 * Parses a CGI response that was given, by the rules for a handler's.  The
 * input has length bytes, of which text has the first ones.  response
 * (initialised by the caller) gets its head, without the fields that only
 * oncewrap sets, and its body as far as text has it, where it stays.  False: it
 * is no response, its Content-Length is not that of its body, or its
 * Idempotency-Outcome says that nothing was completed; why says which.
 */
bool resolve_parse(struct spool *text, uint64_t length, struct response *r,
    struct cgihead *head, char why[RESOLVE_WHY]);

/*
 * Fills in the outcome of a request that was carried out, with the response in
 * *text, of which it has route->max_response + LIMIT_HEAD bytes at least, or
 * all length bytes.  The outcome takes *text, which becomes NULL.  Its .keep
 * says whether retries get the response.  False, for the reasons of
 * resolve_parse(): *text still belongs to the caller.
 */
bool resolve_completed(const struct conf_route *route, struct spool **text,
    uint64_t length, struct store_outcome *outcome, char why[RESOLVE_WHY]);

/* Fills in the outcome of a request that was not carried out: the key is
 * released, and an accepted request runs again. */
void resolve_not_executed(struct store_outcome *outcome);

/* The answer of a request that was carried out. */
struct resolve_answer {
	const struct conf_route *route;
	struct spool *text; /* see resolve_completed(), which may take it */
	uint64_t length;
	bool replayable;       /* retries get it */
	char why[RESOLVE_WHY]; /* it is none: see resolve_parse() */
};

/* An act upon keys that an operator has chosen. */
struct resolve_act {
	const char *name;     /* in forms and in the log */
	const char *done;     /* what the keys are then */
	enum record_state to; /* RECORD_NONE: they are deleted */
	/* the states whose keys may be chosen; RECORD_NONE: any but
	 * in_progress */
	enum record_state states[2];
	size_t nstates;
};

enum { RESOLVE_RELEASE, RESOLVE_FORGET, RESOLVE_NACTS };
extern const struct resolve_act resolve_acts[RESOLVE_NACTS];

/* Acts on one key; answer: it was carried out, or NULL.  RC_LOST: it has
 * changed.  RC_INVALID: see answer->why. */
enum rc resolve_key(struct store *s, const struct resolve_act *act,
    const struct record *key, struct resolve_answer *answer);

/* "done", "lost", "pending", or why it failed: for the log. */
const char *resolve_result(enum rc rc);

/* An act on all keys that a search finds. */
struct resolve_many {
	struct store *store;
	const struct resolve_act *act;
	struct store_filter filter;
	bool every;         /* see struct store_browse */
	int64_t moment;     /* wall (ms): a key that changed since then stays */
	int64_t until_mono; /* it ends early then */
	/* is called for each key that was tried; rc: what came of it */
	void (*tell)(
	    struct resolve_many *m, const struct record *key, enum rc rc);
	void *arg;
	/* what came of it so far */
	int64_t done, stayed;
	bool left;                 /* it ended early */
	char next[STORE_POSITION]; /* where it begins, and goes on; "" */
};

/* Whether the act is on keys of that state (RECORD_NONE: any) that the filter
 * finds; then *out is the filter for them. */
bool resolve_filter(const struct store_filter *filter, enum record_state state,
    struct store_filter *out);

/* Acts on them, the oldest first.  What is in progress stays.  On failure it
 * ends early; what is done stays so. */
enum rc resolve_many(struct resolve_many *m);

#endif
