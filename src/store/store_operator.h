/*
 * The key store's interface for operators: what the page and oncectl search,
 * list, find and delete.  Everything that store.h says of functions, times and
 * failures applies here.
 */
#ifndef STORE_OPERATOR_H
#define STORE_OPERATOR_H

#include <stdatomic.h>

#include "store_outbox.h"

/* --- searches ------------------------------------------------------------- */

/*
 * A search gives a few rows, how many more, and where to go on.  Each call
 * reads for a fraction of a second on a store of any size.  It looks at a
 * bounded number of rows, by an index or by their numbers, and says whether
 * that was all of them; if not, it says how far back it looked.
 */

#define STORE_BROWSE_ROWS 100

/* Room for a position in a list, as a text of digits, '-' and '.', and a
 * NUL. */
#define STORE_POSITION 48

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
	char next[STORE_POSITION];
	/* the walk went by the order of creation and ended early, at a key that
	 * was made at that wall time (ms); 0: it did not */
	int64_t back_to;
};

/*
 * Finds keys: of one open state the oldest change first; those in progress in
 * the order of their numbers; of one name in any order; else the newest key
 * first.  RC_INVALID: .after is no such position.
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

/* --- lists, changes and counts -------------------------------------------- */

/* What the program of a key's last attempt wrote, for people. */
struct store_output {
	int attempt;
	int exit_status;   /* -1: the program did not exit by itself */
	int signal;        /* that ended it; 0: none */
	bool refused;      /* its answer was not accepted, which was: */
	int64_t length;    /* of the whole output */
	struct buf bytes;  /* its beginning */
	struct buf errors; /* the last LIMIT_ERRORS bytes of its stderr */
};

/* Reads it.  RC_NOTFOUND: its answer was accepted, and it wrote nothing to
 * stderr.  After RC_OK the caller calls store_output_free(). */
enum rc store_output(struct store *s, int64_t id, struct store_output *output);
void store_output_free(struct store_output *output);

/* Deletes a key in that state (RECORD_NONE: in any) and everything stored with
 * it.  RC_LOST: the key is leased, is in another state, or does not exist. */
enum rc store_forget(struct store *s, int64_t id, enum record_state from);

/* A key that an operator chose to act on, as it was then. */
struct store_chosen {
	int64_t id;
	int attempt;            /* 0: any */
	enum record_state from; /* RECORD_NONE: any */
	bool done;              /* the result */
};

/* The same for some keys, STORE_CHOSEN_MAX at most, in one transaction: .done
 * says which were deleted; the others have changed.  On failure none was. */
#define STORE_CHOSEN_MAX 20
enum rc store_forget_some(struct store *s, struct store_chosen *keys, size_t n);

/*
 * All keys that store_browse() finds, by one read after the other: the oldest
 * first, or as it says.  The filter lives until store_list_free().  A list ends
 * with RC_NOTFOUND.  The caller frees each record.
 */
struct store_cursor;
enum rc store_list(struct store *s, const struct store_filter *filter,
    struct store_cursor **cursor);
enum rc store_list_next(struct store_cursor *cursor, struct record *key);
void store_list_free(struct store_cursor *cursor);

/* A key with what is read along with its row. */
struct store_listed {
	struct record key;
	struct store_inline_answer answer; /* as of store_lookup() */
	bool request, output;              /* whether there is one */
};
void store_listed_free(struct store_listed *listed);

/* The same for all keys, with that; store_list_free() frees the cursor. */
enum rc store_list_all(struct store *s, struct store_cursor **cursor);
enum rc
store_list_all_next(struct store_cursor *cursor, struct store_listed *listed);

struct store_effect_filter {
	const char *scope, *path; /* NULL: any */
	enum effect_state state;  /* NONE: any */
	int64_t since;            /* changed at that wall time or later */
};

/* The same for effects: store_list_free() frees the cursor, and the filter's
 * texts live until then. */
enum rc store_outbox_list(struct store *s,
    const struct store_effect_filter *filter, struct store_cursor **cursor);
enum rc store_outbox_next(struct store_cursor *cursor, struct effect *effect);

/*
 * Makes a pending effect due now, and restarts the tries of an effect that was
 * given up; or deletes an effect.  RC_LOST: the effect is being tried, does not
 * exist, or (retry) is delivered.
 */
enum rc store_effect_retry(struct store *s, int64_t id);
enum rc store_effect_drop(struct store *s, int64_t id);

/* A copy of the whole store while it is in use. */
struct store_backup {
	const char *file; /* its name; it is made 0600, for root with the
			   * owner of the database */
	bool replace;     /* a plain file of that name may be replaced */
	/* gives up when the write-ahead log, which cannot be reset meanwhile,
	 * becomes longer (bytes) */
	uint64_t max_log;
	const atomic_bool *stop; /* gives up when it is set; NULL: never */
};

struct store_copied {
	/* wall clock (ms): the copy has all that was durable then, and may
	 * have some of what came later */
	int64_t at_wall;
	uint64_t bytes;
};

/*
 * Makes the copy.  RC_OK: the file is whole and durable.  Otherwise there is no
 * file of that name, or the old one, and why (of size bytes) gets a sentence.
 */
enum rc store_backup(struct store *s, const struct store_backup *what,
    struct store_copied *copied, char *why, size_t size);

struct store_counts {
	int64_t keys[RECORD_NSTATES];
	/* rows of keys and of effects, also those that make no sense */
	int64_t key_rows, effect_rows;
	int64_t oldest_unknown_wall; /* 0: none */
	int64_t answer_bytes;        /* bytes of the stored bodies */
	int64_t database_bytes;
	int64_t wal_bytes; /* -1: the store has no log of its own */
};
enum rc store_stats(struct store *s, struct store_counts *counts);

/* The number of keys of one scope in each state. */
struct store_scope {
	char *scope;
	int64_t keys[RECORD_NSTATES];
};

/*
 * The next scopes after `after` (NULL: from the first), at most max, ordered by
 * their bytes.  *n is 0 if there are no more.  Each call reads all keys.
 */
enum rc store_scopes(struct store *s, const char *after,
    struct store_scope *scopes, size_t max, size_t *n);
void store_scopes_free(struct store_scope *scopes, size_t n);

/* One finding of doctor; ok: the operator need not act. */
struct store_finding {
	bool ok;
	char name[32];
	char text[256];
};
/* conf: the configuration, or NULL if the caller has none. */
enum rc store_doctor(struct store *s, const struct conf *conf,
    struct store_finding *findings, size_t max, size_t *n);

#endif
