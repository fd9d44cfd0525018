/*
 * The handler's side of a key store, without SQL: each call goes to its kind of
 * store.  Code here does not know what a token is: the store decides.
 */
#include "config.h"

#include "conf_text.h"
#include "store_module.h"

#include "handler_api.h"

static const struct handler_api_ops *
api_ops_of(const struct handler_api *api)
{
	return ((const struct handler_api_base *)(const void *)api)->ops;
}

enum rc
handler_api_open(struct handler_api **api, const char *database,
    int64_t patience, char *err, size_t errsize)
{
	const struct store_module *module;
	enum rc rc;

	*api = NULL;
	if (!conf_text_is_postgresql(database))
		return sqlite_handler_api_open(
		    api, database, patience, err, errsize);
	if ((rc = store_module_load(&module, err, errsize)) != RC_OK)
		return rc;
	return module->open_handler_api(api, database, patience, err, errsize);
}

void
handler_api_close(struct handler_api *api)
{
	if (api != NULL)
		api_ops_of(api)->close(api);
}

const char *
handler_api_why(const struct handler_api *api)
{
	return api_ops_of(api)->why(api);
}

enum rc
handler_api_emit(struct handler_api *api, const char *token,
    const struct handler_api_effect *effect)
{
	const struct handler_api_write w = {
		.token = token,
		.effects = effect,
		.neffects = 1,
	};

	return api_ops_of(api)->write(api, &w);
}

enum rc
handler_api_checkpoint(struct handler_api *api, const char *token,
    const char *point, const struct handler_api_effect *effects,
    size_t neffects)
{
	const struct handler_api_write w = {
		.token = token,
		.point = point,
		.effects = effects,
		.neffects = neffects,
	};

	return api_ops_of(api)->write(api, &w);
}

enum rc
handler_api_respond(struct handler_api *api, const char *token, int status,
    const char *headers, const void *body, size_t len,
    const struct handler_api_effect *effects, size_t neffects)
{
	const struct handler_api_write w = {
		.token = token,
		.responds = true,
		.status = status,
		.headers = headers,
		.body = body,
		.len = len,
		.effects = effects,
		.neffects = neffects,
	};

	return api_ops_of(api)->write(api, &w);
}
