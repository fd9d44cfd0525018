/*
 * How a request is admitted, by the verbs that do so: reserve, by which it
 * takes the lease of its key and runs at once, and accept, by which it is
 * queued.  Both have one transaction, in two steps: store_admit_ask() sends all
 * that is to be read, and store_admit_take() decides by it, lets a function of
 * step.h change the record, and writes that.  A store runs them for many
 * callers together: it asks for all of them, and then lets each decide.
 */
#ifndef STORE_ADMIT_H
#define STORE_ADMIT_H

#include "store_change.h"
#include "store_ops.h"

/* What the transaction has read beside the record. */
struct admit_seen {
	int64_t id;     /* of the key with that identity; 0: there is none */
	int64_t next;   /* a number for a new key */
	int64_t recent; /* SQLite's: see sqlite_write.c */
	/* whether the caller has as many keys as it may: in progress; with an
	 * open outcome */
	bool active, open;
	bool no_room; /* max_kept leaves none for the request */
	bool full;    /* the queue is */
};

struct store_body;

struct store_admit {
	const struct store_reservation *what;
	bool accepts;       /* it is queued; else it takes the lease */
	bool keep;          /* the request is stored */
	unsigned max_queue; /* keys that wait for a worker, at most */
	/* made before the transaction, which other callers may wait for; of
	 * the UUID a new downstream key is made */
	char uuid[RECORD_UUID_LEN + 1];
	char token[RECORD_TOKEN_LEN + 1];
	char resource[RECORD_RESOURCE_LEN + 1]; /* "": it gets none */

	/* the store's */
	const unsigned char *secret;
	int64_t owner;           /* this process */
	struct row_value number; /* what the identity is found by */
	int64_t spec;  /* of the fingerprint's, its number; 0: not known yet */
	uint64_t more; /* bytes that it adds to the stored requests */
	/* the same of others that the transaction has admitted since it
	 * asked */
	uint64_t before;
	int64_t used; /* bytes of the store, if there is a max_store */
	/* see struct store_base */
	int64_t leases_from, queued_from;
	/* the transaction has other callers', which wait: RC_LOST if it is more
	 * than the insert of a row */
	bool shared;
	/* an earlier transaction of this one may have taken place */
	bool unsure;
	struct store_body *body; /* SQLite's: of a large request */

	/* of the last run */
	struct admit_seen seen;
	enum decision decision;
	struct record found; /* .id is 0: there is none */
	bool full;           /* the queue is full: nothing was stored */
	bool part;           /* only the first part of the request was stored */
	bool changed;        /* something was written */
	bool is_new;         /* the key is */
	struct record taken; /* only its plain members */
};

/* Asserts that its terms are possible; leased: an attempt begins now. */
void store_admit_check(const struct store_reservation *what, bool leased);

/* Begins one of accept, or of reserve.  After it p->found is to be freed. */
void store_admit_init(
    struct store_admit *p, const struct store_reservation *what, bool accepts);

/* A verb under way.  After begin comes store_admit_do(), and end, which sets
 * the results and returns the verb's. */
struct store_admission {
	struct store_admit admit;
	struct store_asked asked;
};
void store_admission_begin(struct store_admission *a);
enum rc store_admission_end(struct store_admission *a, enum rc rc);

/* Sends what is to be read. */
void store_admit_ask(struct tx *tx, const struct store_admit *p);

/*
 * The rest of the transaction.  RC_OK: p->decision is made, and if p->changed,
 * the request is admitted.  If p->part, the store stores the rest of the
 * request, and the transaction is run again.  RC_LOST: another process was
 * faster, or it must not be shared.
 */
enum rc store_admit_take(struct tx *tx, struct store_admit *p);

#endif
