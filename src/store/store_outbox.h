/*
 * The key store's outbox, for the threads that deliver effects.  Everything
 * that store.h says of functions, times and failures applies here.
 */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include "buf.h"
#include "store.h"
#include "words.h"

/* See words.h. */
/* clang-format off */
#define STORE_EFFECT_STATES(X) \
	X(STORE_EFFECT_NONE, "none") \
	X(STORE_EFFECT_PENDING, "pending") \
	X(STORE_EFFECT_DELIVERED, "delivered") \
	X(STORE_EFFECT_DEAD_LETTER, "dead_letter")
/* clang-format on */
enum store_effect_state { STORE_EFFECT_STATES(WORDS_ENUMERATOR) };
#define STORE_EFFECT_NSTATES WORDS_COUNT(STORE_EFFECT_STATES)

/* "pending", ...; parse is false if no state has that name. */
const char *store_effect_state_name(enum store_effect_state state);
bool store_effect_state_parse(const char *name, enum store_effect_state *state);

/* The row of an effect, without its payload. */
struct store_effect {
	int64_t id, key_id;
	char effect_key[RECORD_UUID_LEN + 1];
	char *topic, *scope, *path, *key;
	enum store_effect_state state;
	int attempts; /* tries begun */
	/* one pending effect of a key has the turn: it has a time, or it is
	 * being tried */
	bool has_turn;
	int64_t next_at;      /* store time; 0: at once */
	int64_t owner;        /* the process that is trying it; 0: none */
	struct buf reference; /* what its program printed: any bytes */
	char *last_error;
	int64_t created_at, updated_at; /* wall clock (ms) */
};
void store_effect_free(struct store_effect *e);

/*
 * The effect of that topic that is due next, and its time.  The effects of one
 * key are tried one after the other, in the order of their insertion.
 * RC_NOTFOUND: there is none, or each waits for an earlier effect.
 */
enum rc store_effect_next(struct store *s, const char *topic,
    struct store_effect *effect, int64_t *at);

/*
 * Takes the effect for a try.  The try is counted even if this process dies
 * during it.  Everything that was committed together with the effect is durable
 * when this returns.  RC_LOST: another thread or process has taken the effect.
 * While this process lives, no other tries it before store_effect_end().
 */
enum rc store_effect_begin(struct store *s, struct store_effect *effect);

/* The standard input of the effect's program; NULL if it is empty.  The caller
 * frees it. */
enum rc store_effect_payload(
    struct store *s, const struct store_effect *effect, struct spool **payload);

struct store_effect_end {
	/* PENDING: to be tried again, `after` ms from now */
	enum store_effect_state state;
	int64_t after;
	const void *reference; /* DELIVERED; may be any bytes */
	size_t reference_len;  /* 0: none */
	char last_error[LIMIT_LAST_ERROR];
};

/* Ends the try.  RC_LOST: this process no longer owns the effect; nothing was
 * changed. */
enum rc store_effect_end(struct store *s, const struct store_effect *effect,
    const struct store_effect_end *end);

#endif
