/*
 * The key store's interface for searches: a few rows, how many more, and where
 * to go on.  Everything that store.h says of functions, times and failures
 * applies here.
 *
 * Each call reads for a fraction of a second on a store of any size.  It looks
 * at a bounded number of rows, by an index or by their numbers, and says
 * whether that was all of them; if not, it says how far back it looked.
 */
#ifndef STORE_BROWSE_H
#define STORE_BROWSE_H

#include "store_outbox.h"

#define STORE_BROWSE_ROWS 100

/* Room for a place in a list, as a text of digits, '-' and '.'; and a NUL. */
#define STORE_PLACE 48

/* The keys to find: those to which all applies that is set. */
struct store_filter {
	const char *key, *scope, *path; /* NULL: any; scope "" is a scope */
	bool below; /* the path is the beginning of the key's path */
	/* UUIDs, as people copy them (see uuid_copied()); NULL: any.
	 * instance: the Reference of any request for the key */
	const char *downstream, *instance;
	const char *peer;        /* the address of the last client; NULL: any */
	enum record_state state; /* RECORD_NONE: any */
	/* made at that wall time (ms) or later, and before that one; 0: any */
	int64_t from, to;
	int64_t since; /* changed at that wall time or later; 0: any */
};

struct store_browse {
	struct store_filter filter;
	/* Keys in the order of their creation, or effects: the oldest first.
	 * The walk ends with the last row that is told, and does not count. */
	bool oldest;
	/* A time of creation is looked for in every row; else by the numbers,
	 * which misses keys if the clock jumped */
	bool every;
	const char
	    *after; /* store_found.next, to go on; NULL: from the first */
};

struct store_found {
	int64_t id[STORE_BROWSE_ROWS];
	size_t n;
	int64_t count; /* of all that were found, the first n included */
	bool all;      /* every row was looked at: count is the whole number */
	/* .after, for what comes after the first n; "": that is all */
	char next[STORE_PLACE];
	/* the walk went by the order of creation and ended early, at a key that
	 * was made at that wall time (ms); 0: it did not */
	int64_t back_to;
};

/*
 * Finds keys: of one open state the oldest change first; those in progress in
 * the order of their numbers; of one name in any order; else the newest key
 * first.  RC_INVALID: .after is no such place.
 */
enum rc store_browse(struct store *s, const struct store_browse *what,
    struct store_found *found);

/* Finds the effects of a key; or, with key_id 0, those that were given up.  The
 * oldest first. */
enum rc store_browse_effects(struct store *s, int64_t key_id, const char *after,
    struct store_found *found);

/*
 * Makes a random UUID the Reference of a request for that identity: see
 * sealed.h.  It tells the identity, whether there is a key or not.  RC_OK,
 * or RC_NOMEM: the UUID is unchanged.
 */
enum rc store_reference(struct store *s, const struct store_identity *identity,
    char uuid[RECORD_UUID_LEN + 1]);

/* What a Reference or any other UUID is to this store. */
enum store_instance {
	STORE_INSTANCE_NONE,    /* no UUID */
	STORE_INSTANCE_FOREIGN, /* not of a request with a key of this store */
	STORE_INSTANCE_OURS     /* of a key that is, was or would be here */
};
enum store_instance store_instance_kind(struct store *s, const char *instance);

/* What is to be said if the key is not what became of the request with that
 * Reference; NULL: nothing. */
const char *
store_instance_warning(const struct record *key, const char *instance);

/*
 * Reads a key, and the head of its response (initialised by the caller; NULL:
 * not wanted).  RC_NOTFOUND.  The caller frees the record.  If the key has no
 * response that can be replayed, or it makes no sense, the head has no fields.
 */
enum rc store_browse_key(
    struct store *s, int64_t id, struct record *key, struct response *head);

/* Reads an effect, which the caller frees.  RC_NOTFOUND. */
enum rc store_browse_effect(struct store *s, int64_t id, struct effect *effect);

struct store_browse_counts {
	int64_t keys[RECORD_NSTATES]; /* -1: not counted yet */
	/* there are more than that many */
	bool more[RECORD_NSTATES];
};

/* Counts the keys by state: as store_gauges(), but up to a bound. */
enum rc store_browse_count(struct store *s, struct store_browse_counts *counts);

#endif
