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
#ifndef EFFECT_STEP_H
#define EFFECT_STEP_H

#include "effect.h"
#include "step.h"

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
