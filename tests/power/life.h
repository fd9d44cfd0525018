/*
 * A life of a key store, step by step, and a ledger of what it promised.
 *
 * To test more of the store, add a verb here, what it does and promises in
 * life.c, and steps to the table there.
 */
#ifndef LIFE_H
#define LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store_operator.h"
#include "store_outbox.h"

enum life_verb {
	LIFE_OPEN,         /* makes it, if there is none */
	LIFE_CLOSE,        /* leases left are now a dead owner's */
	LIFE_RESERVE,      /* key; must be allowed to run */
	LIFE_COMPLETE,     /* key, with a body of that size */
	LIFE_NOT_KEPT,     /* key, the same without its answer */
	LIFE_RELEASE,      /* key */
	LIFE_UNKNOWN,      /* key */
	LIFE_SWEEP,        /* the attempts of dead owners */
	LIFE_REAP,         /* keys past their retention */
	LIFE_CLAIM,        /* key: a try to find out begins */
	LIFE_RESOLVE,      /* key, unknown: it completed, that body */
	LIFE_NOT_EXECUTED, /* key, unknown: it may run again */
	LIFE_GIVE_UP,      /* key, claimed: a dead letter */
	LIFE_FORGET,       /* key */
	LIFE_CHECKPOINT,   /* as far as it goes; by a connection of its own */
	LIFE_TRUNCATE,     /* the whole log, and makes it empty */
	/* A handler's own transaction, see struct life_step; an attempt that
	 * answered so ends, in whatever way; what it did is made durable. */
	LIFE_SAY, /* key, leased */
	LIFE_SEAL,
	LIFE_HARDEN,
	/* Work that is accepted. */
	LIFE_TOPIC,   /* "mail" is one that handlers may name */
	LIFE_ACCEPT,  /* key; its request is kept */
	LIFE_START,   /* key, accepted: a worker takes its lease */
	LIFE_REQUEUE, /* key, leased and accepted: it is run again */
	LIFE_ABANDON, /* key, accepted at_once: no worker began it in time */
	/* The outbox: key's first effect that is pending. */
	LIFE_TRY,
	LIFE_DELIVERED, /* ends the try */
	LIFE_FAILED,
	LIFE_UNDELIVERED
};

/* How a handler's connection syncs; OFF_MOVES also moves the log into the
 * database, with nothing synced. */
enum life_sync { LIFE_FULL, LIFE_NORMAL, LIFE_OFF, LIFE_OFF_MOVES };

struct life_step {
	enum life_verb verb;
	const char *key;
	size_t size;
	size_t request; /* bytes of a request that is kept; 0: 3000 */
	bool at_once;   /* past its retention as soon as it is settled */
	bool asked;     /* reserve: its request is kept, to find out with */
	bool marker;    /* reserve: past its retention a marker is kept */
	/* say, beside a row of its own: */
	enum life_sync sync;
	const char *point; /* a recovery point, or NULL */
	int effects;       /* to be delivered */
	bool answer;       /* with a body of size */
};

/* Everything; a shorter one, for faults; what a new process does first. */
extern const struct life_step life_whole[], life_short[], life_after[];
extern const size_t life_nwhole, life_nshort, life_nafter;

/* Answers and requests that are stored in pieces. */
extern const struct life_step life_pieces[];
extern const size_t life_npieces;

/* Handlers that speak for themselves, accepted work, effects; the same for
 * faults; and with handlers that sync nothing and move the log. */
extern const struct life_step life_said[], life_said_short[], life_careless[];
extern const size_t life_nsaid, life_nsaid_short, life_ncareless;

struct life;

#define LIFE_KEYS 24

/* Sets of states; nothing there is RECORD_NONE. */
#define LIFE_IS(state) (1U << (state))

struct life_key {
	const char *name;
	bool leased; /* by this process */
	bool dead;   /* if it is in progress, its owner is gone */
	struct store_lease lease;
	unsigned may;    /* states in which it may be */
	unsigned ghost;  /* and after a crash */
	unsigned before; /* of a settlement that goes on: as it was */
	bool past;       /* its retention is over */
	size_t size;     /* of its body */
	bool kept;
	bool asked, marker;
	size_t request; /* bytes of its request, if that is kept */
	struct store_tries tries;
	bool claimed; /* the next to settle it is a reconciler */
	bool accepted;
	/* Transactions of its handlers: that are there, and how many of them
	 * no commit of the store's has made durable; and that may be there
	 * after a crash, though the handler was told otherwise. */
	int deeds, soft, deed_ghosts;
	unsigned said_ghost; /* as ghost, until the store commits */
	int tried, delivered, undelivered; /* of its effects, at least */
	struct effect effect;              /* being tried: its numbers */
	bool trying;
};

struct life {
	char dir[256], file[280];
	enum conf_durability durability;
	int64_t busy_timeout;
	uint64_t max_wal;
	bool full; /* the disk stays full: an answer may not be kept */
	struct store *store; /* NULL while it is not open */
	struct life_key key[LIFE_KEYS];
	size_t nkeys;
	char wrong[512]; /* the first thing that must not be, or "" */
};

void life_init(struct life *, const char *dir, enum conf_durability);

/* Whether what that step did is durable when it is over, with FULL. */
bool life_is_firm(const struct life_step *);

/* Whether after that step, until the store hardens, SQLite promises nothing
 * about a loss of power. */
bool life_is_careless(const struct life_step *);

/* "reserve k", ... */
const char *life_step_text(const struct life_step *, char *, size_t);

/*
 * Does it, and enters in the ledger what follows from how it went.  What must
 * never be goes to wrong.  A step that makes no sense because an earlier one
 * failed does nothing, and is RC_INVALID.
 */
enum rc life_step(struct life *, const struct life_step *);

/* The process that has the leases is gone; so it is after LIFE_CLOSE. */
void life_crashed(struct life *);

/* Every key is in a state that it may be in, its answer is the right one. */
void life_look(struct life *, bool crashed);

/*
 * What a new process finds: sound files, every key where it may be, no orphan;
 * after a sweep every key gets the answer that is right for it, and a new one
 * can be reserved and completed.  The ledger is that of the lost process.
 * Opens and closes a store of its own.
 */
void life_autopsy(struct life *);

/* The rows of all tables but the clock's, as a number; without a body that is
 * there in part. */
bool life_snapshot(const char *file, uint64_t *hash, bool *no_keys);

/* Whether a body is there in part: pieces that belong to no request yet, or to
 * a key that is not completed; or a row of once_unnamed. */
bool life_has_part(const char *file);

/* Whether what is there in part is what that step leaves before its end: the
 * first pieces of its body, not all, and the row of once_unnamed for them. */
bool
life_part_fits(const char *file, const struct life *, const struct life_step *);

#endif
