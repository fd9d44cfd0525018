/*
 * See effect.h.
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
