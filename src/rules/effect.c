/*
 * See effect.h.
 *
 * Invariants, checked by effect_is_sound():
 *
 *  1. An effect has a number, and a state that is not EFFECT_NONE.
 *  2. Only a pending one has the turn: a time, or an owner, and not both.
 *  3. An owner has begun a try.
 *  4. Only a delivered one has a reference.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "effect.h"

static const char *const names[] = { EFFECT_STATES(WORDS_WORD) };

const char *
effect_state_name(enum effect_state state)
{
	assert((unsigned)state < EFFECT_NSTATES);
	return names[state];
}

bool
effect_state_parse(const char *name, enum effect_state *state)
{
	for (int i = EFFECT_PENDING; i < EFFECT_NSTATES; i++) {
		if (strcmp(name, names[i]) == 0) {
			*state = (enum effect_state)i;
			return true;
		}
	}
	return false;
}

void
effect_free(struct effect *e)
{
	free(e->topic);
	free(e->scope);
	free(e->path);
	free(e->key);
	free(e->last_error);
	buf_free(&e->reference);
	memset(e, 0, sizeof(*e));
}

bool
effect_is_sound(const struct effect *e)
{
	const bool tried = e->owner != 0;

	return e->id > 0 && e->state != EFFECT_NONE && /* 1 */
	    (e->state == EFFECT_PENDING || (!tried && !e->has_turn)) &&
	    !(tried && e->has_turn) &&                               /* 2 */
	    (!tried || e->attempts > 0) &&                           /* 3 */
	    (e->state == EFFECT_DELIVERED || e->reference.len == 0); /* 4 */
}
