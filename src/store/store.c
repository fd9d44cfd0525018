/*
 * The store that a process has opened: each call goes to its kind.
 */
#include "config.h"

#include "conf_text.h"
#include "store_module.h"
#include "store_ops.h"

static const struct store_ops *
ops_of(const struct store *store)
{
	return ((const struct store_base *)(const void *)store)->ops;
}

static const struct store_ops *
ops_of_list(const struct store_cursor *cursor)
{
	return ops_of(
	    ((const struct store_cursor_base *)(const void *)cursor)->store);
}

/* clang-format off */
#define X(type, name, parameters, arguments)	\
	type					\
	store_##name parameters			\
	{					\
		return ops_of(s)->name arguments; \
	}
STORE_VALUE_OPS(X)
#undef X
#define X(type, name, parameters, arguments)	\
	type					\
	store_##name parameters			\
	{					\
		ops_of(s)->name arguments;	\
	}
STORE_VOID_OPS(X)
#undef X
/* clang-format on */

enum rc
store_open(struct store **store, const struct store_options *options, char *err,
    size_t errsize)
{
	const struct store_module *module;
	enum rc rc;

	if (!conf_text_is_postgresql(options->database))
		return sqlite_open(store, options, err, errsize);
	if ((rc = store_module_load(&module, err, errsize)) != RC_OK)
		return rc;
	return module->open(store, options, err, errsize);
}

void
store_close(struct store *store)
{
	if (store != NULL)
		ops_of(store)->close(store);
}

void
store_outcome_free(struct store_outcome *outcome)
{
	if (outcome != NULL)
		ops_of(outcome->store)->outcome_free(outcome);
}

enum rc
store_list_next(struct store_cursor *cursor, struct record *key)
{
	struct store_listed listed;
	enum rc rc = ops_of_list(cursor)->list_next(cursor, &listed);

	if (rc == RC_OK)
		*key = listed.key;
	return rc;
}

enum rc
store_list_all_next(struct store_cursor *cursor, struct store_listed *listed)
{
	return ops_of_list(cursor)->list_next(cursor, listed);
}

enum rc
store_outbox_next(struct store_cursor *cursor, struct store_effect *effect)
{
	return ops_of_list(cursor)->outbox_next(cursor, effect);
}

void
store_list_free(struct store_cursor *cursor)
{
	if (cursor != NULL)
		ops_of_list(cursor)->list_free(cursor);
}
