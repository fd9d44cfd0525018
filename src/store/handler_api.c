/*
 * The handler's side of a key store, without SQL: each call goes to its kind of
 * store.  Code here does not know what a token is: the store decides.
 */
#include "config.h"

#include "conf_value.h"
#include "store_module.h"

#include "handler_api.h"

enum rc
handler_api_say(const char *database, int64_t patience,
    const struct handler_api_write *w, char *why, size_t size)
{
	const struct store_module *module;
	enum rc rc;

	if (!conf_text_is_postgresql(database))
		return sqlite_handler_api_say(database, patience, w, why, size);
	if ((rc = store_module_load(&module, why, size)) != RC_OK)
		return rc;
	return module->handler_api_say(database, patience, w, why, size);
}
