/*
 * What the functions of every store take and give.
 */
#include "config.h"

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
