/*
 * What the functions of every store take and give.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store_operator.h"

void
store_inline_answer_init(struct store_inline_answer *small)
{
	small->is = false;
	response_init(&small->response);
	buf_init(&small->body, STORE_INLINE);
}

void
store_inline_answer_free(struct store_inline_answer *small)
{
	response_free(&small->response);
	buf_free(&small->body);
	store_inline_answer_init(small);
}

void
store_listed_free(struct store_listed *listed)
{
	record_free(&listed->key);
	store_inline_answer_free(&listed->answer);
}

void
store_changes_free(struct store_change *changes, int n)
{
	for (int i = 0; i < n; i++) {
		free((void *)(uintptr_t)changes[i].scope);
		free((void *)(uintptr_t)changes[i].path);
		free((void *)(uintptr_t)changes[i].key);
		memset(&changes[i], 0, sizeof(changes[i]));
	}
}

void
store_scopes_free(struct store_scope *scopes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(scopes[i].scope);
		scopes[i].scope = NULL;
	}
}

/* --- effects -------------------------------------------------------------- */

static const char *const names[] = { STORE_EFFECT_STATES(WORDS_WORD) };

const char *
store_effect_state_name(enum store_effect_state state)
{
	assert((unsigned)state < STORE_EFFECT_NSTATES);
	return names[state];
}

bool
store_effect_state_parse(const char *name, enum store_effect_state *state)
{
	int i;

	for (i = STORE_EFFECT_PENDING; i < STORE_EFFECT_NSTATES; i++) {
		if (strcmp(name, names[i]) == 0) {
			*state = (enum store_effect_state)i;
			return true;
		}
	}
	return false;
}

void
store_effect_free(struct store_effect *e)
{
	free(e->topic);
	free(e->scope);
	free(e->path);
	free(e->key);
	free(e->last_error);
	buf_free(&e->reference);
	memset(e, 0, sizeof(*e));
}
