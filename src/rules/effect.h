/*
 * An effect of a key: what a handler has put into the outbox, and a program
 * delivers.
 */
#ifndef EFFECT_H
#define EFFECT_H

#include "buf.h"
#include "conf.h"
#include "outcome.h"
#include "record.h"
#include "step.h"

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

/* Whether its payload is still needed; if not, it is deleted. */
bool effect_needs_payload(const struct effect *e);

/* Whether the invariants numbered in effect.c hold. */
bool effect_is_sound(const struct effect *e);

/* --- its changes ---------------------------------------------------------- */

/*
 * Every change that can happen to an effect, as a pure function.  A store reads
 * the effect and those of its key that the change concerns, calls one of these,
 * and writes what has changed, all in one transaction.
 *
 *   1. If a key has pending effects, exactly one of them has the turn: it has
 *      either an owner or a time.  A change that takes the turn from an effect
 *      gives it to the first pending one.
 *   2. The end of a try names that try, by its number and its owner.
 *
 * first: the first pending effect of the key but the one that changes; NULL:
 * there is none.  RC_OK; RC_LOST: the effect is not what the caller expects;
 * RC_NOMEM.  After a failure no effect is to be written.
  */

struct effect_try {
	/* that were begun; at the beginning of a try, before that one */
	int attempts;
	int64_t owner;
};

struct effect_end {
	/* PENDING: to be tried again, `after` ms from now */
	enum effect_state state;
	int64_t after;
	const void *reference; /* DELIVERED; may be any bytes */
	size_t reference_len;  /* 0: none */
	char last_error[LIMIT_LAST_ERROR];
};

/* How a try went. */
struct effect_run {
	const struct run_facts *facts; /* NULL: its program was not run */
	bool stopping;                 /* this process stops */
	int attempts;                  /* tries begun, with this one */
	uint32_t random;               /* 32 random bits */
};

/*
 * What a try of an effect of that section comes to: sets the state of end, the
 * pause, and last_error; the caller has set that where no program was run.
 */
void effect_judge(struct effect_end *end, const struct conf_effect *conf,
    const struct effect_run *run);

/* A try begins, of an effect that is due. */
enum rc effect_step_begin(
    struct effect *e, const struct effect_try *try, struct step_time at);

/*
 * A try ends.  If it was freed because its owner seemed to be lost, and no
 * other try has begun, its delivery counts, and nothing else.
 */
enum rc effect_step_end(struct effect *e, struct effect *first,
    const struct effect_try *try, const struct effect_end *end,
    struct step_time at);

/* The owner of the try is lost.  An effect is delivered at least once, so it is
 * due again even if that owner may still be delivering it. */
enum rc
effect_step_free(struct effect *e, struct effect *first, struct step_time at);

/*
 * An operator has it tried now, or the effect that comes before it; one that
 * was given up has all its tries anew.  holder: another one that has the turn,
 * and is not first; NULL: there is none.  A try under way is not disturbed: its
 * end passes the turn on.
 */
enum rc effect_step_retry(struct effect *e, struct effect *first,
    struct effect *holder, struct step_time at);

/* An operator deletes it: it becomes EFFECT_NONE. */
enum rc
effect_step_drop(struct effect *e, struct effect *first, struct step_time at);

#endif
