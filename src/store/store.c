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
	return store_base_of(store)->ops;
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

const unsigned char *
store_secret(const struct store *s)
{
	return store_base_of(s)->secret;
}

const char *
store_database(const struct store *s)
{
	return store_base_of(s)->database;
}

const char *
store_folder(const struct store *s)
{
	return store_base_of(s)->folder;
}

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
