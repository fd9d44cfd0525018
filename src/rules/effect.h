/*
 * An effect of a key: what a handler has put into the outbox, and a program
 * delivers.  effect_step.h has all its changes.
 */
#ifndef EFFECT_H
#define EFFECT_H

#include "buf.h"
#include "record.h"

/* See words.h.  EFFECT_NONE: there is no effect. */
/* clang-format off */
#define EFFECT_STATES(X) \
	X(EFFECT_NONE, "none") \
	X(EFFECT_PENDING, "pending") \
	X(EFFECT_DELIVERED, "delivered") \
	X(EFFECT_DEAD_LETTER, "dead_letter")
/* clang-format on */
enum effect_state { EFFECT_STATES(WORDS_ENUMERATOR) };
#define EFFECT_NSTATES WORDS_COUNT(EFFECT_STATES)

/* "pending", ...; parse is false if no state has that name. */
const char *effect_state_name(enum effect_state state);
bool effect_state_parse(const char *name, enum effect_state *state);

/* The row of an effect, without its payload. */
struct effect {
	int64_t id, key_id;
	char effect_key[RECORD_UUID_LEN + 1];
	char *topic, *scope, *path, *key; /* owned */
	enum effect_state state;
	int attempts; /* tries begun */
	/* one pending effect of a key has the turn: it has a time, or it is
	 * being tried */
	bool has_turn;
	int64_t next_at;      /* store time; 0: at once */
	int64_t owner;        /* the process that is trying it; 0: none */
	struct buf reference; /* what its program printed: any bytes */
	char *last_error;     /* owned; NULL: none */
	int64_t created_at, updated_at; /* wall clock (ms) */
};

/* Frees its members and zeroes all; not the struct. */
void effect_free(struct effect *e);

/* Whether the invariants numbered in effect.c hold. */
bool effect_is_sound(const struct effect *e);

#endif
