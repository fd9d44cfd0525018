/*
 * The key store's outbox, for the threads that deliver effects and for
 * operators.  Everything that store.h says of functions, times and failures
 * applies here.
 */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include "store.h"

enum store_effect_state {
	STORE_EFFECT_NONE,
	STORE_EFFECT_PENDING,
	STORE_EFFECT_DELIVERED,
	STORE_EFFECT_DEAD_LETTER
};
#define STORE_EFFECT_NSTATES 4

/* "pending", ...; parse is false if no state has that name. */
const char *store_effect_state_name(enum store_effect_state);
bool store_effect_state_parse(const char *, enum store_effect_state *);

/* An effect that is due, or is being tried. */
struct store_effect {
	int64_t id, key_id;
	int attempts; /* tries begun */
	char effect_key[RECORD_UUID_LEN + 1];
	char *topic, *scope, *path, *key;
};
void store_effect_free(struct store_effect *);

/*
 * The effect of that topic that is due next, and its time.  The effects of one
 * key are tried one after the other, in the order of their insertion.
 * RC_NOTFOUND: there is none, or each waits for an earlier effect.
 */
enum rc store_effect_next(
    struct store *, const char *topic, struct store_effect *, int64_t *at);

/*
 * Takes the effect for a try.  The try is counted even if this process dies
 * during it.  Everything that was committed together with the effect is durable
 * when this returns.  RC_LOST: another thread or process has taken the effect.
 * While this process lives, no other tries it before store_effect_end().
 */
enum rc store_effect_begin(struct store *, struct store_effect *);

/* The standard input of the effect's program; NULL if it is empty.  The caller
 * frees it. */
enum rc store_effect_payload(
    struct store *, const struct store_effect *, struct spool **payload);

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
enum rc store_effect_end(struct store *, const struct store_effect *,
    const struct store_effect_end *);

/* --- for operators: oncectl ------------------------------------------- */

struct store_effect_row {
	int64_t id;
	char *key, *scope, *path, *topic, *last_error;
	char *reference; /* NULL: none; a NUL follows it */
	size_t reference_len;
	enum store_effect_state state;
	int attempts;
	bool claimed; /* it is being tried */
	bool lost;    /* by a process that is gone */
	char effect_key[RECORD_UUID_LEN + 1];
	int64_t next_at, created_at, updated_at; /* wall clock, ms; 0: none */
};
void store_effect_row_free(struct store_effect_row *);

struct store_effect_filter {
	const char *scope, *path;      /* NULL: any */
	enum store_effect_state state; /* NONE: any */
	int64_t since;                 /* changed at that wall time or later */
	int64_t id;                    /* 0: any */
};

struct store_outbox;
enum rc store_outbox_list(
    struct store *, const struct store_effect_filter *, struct store_outbox **);
enum rc store_outbox_next(struct store_outbox *, struct store_effect_row *);
/* RC_NOTFOUND: the list has no more rows */
void store_outbox_free(struct store_outbox *);

/*
 * Makes a pending effect due now, and restarts the tries of an effect that was
 * given up; or deletes an effect.  RC_LOST: the effect is being tried, does not
 * exist, or (retry) is delivered.
 */
enum rc store_effect_retry(struct store *, int64_t id);
enum rc store_effect_drop(struct store *, int64_t id);

#endif
