/*
 * Makes a struct request from NAME=VALUE strings and a body.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "scope.h"
#include "uuid.h"
#include "stored_request.h"

/* Cuts NAME=VALUE strings, in place, into params. */
static enum rc
cut(struct stored_request *kept)
{
	char *p = kept->text.data, *end = p + kept->text.len, *equals;
	size_t max = 0, n = 0;

	for (; p < end; p += strlen(p) + 1)
		max++;
	if ((kept->params = calloc(max + 1, sizeof(*kept->params))) == NULL)
		return RC_NOMEM;
	for (p = kept->text.data; p < end; p = equals + strlen(equals) + 1) {
		if ((equals = strchr(p, '=')) == NULL)
			return RC_CORRUPT;
		*equals++ = '\0';
		kept->params[n].name = p;
		kept->params[n++].value = equals;
	}
	kept->rq.params = kept->params;
	kept->rq.nparams = n;
	return RC_OK;
}

static const char *
kept_param_or_empty(const struct request *rq, const char *name)
{
	const char *value = request_param(rq, name);

	return value != NULL ? value : "";
}

enum rc
stored_request_load(struct store *store, const struct store_identity *identity,
    int64_t id, struct stored_request *kept)
{
	struct request *rq = &kept->rq;
	const char *instance;
	enum rc rc;

	memset(kept, 0, sizeof(*kept));
	buf_init(&kept->text, LIMIT_ENV);
	rq->method = rq->query = "";
	rq->path = identity->path;
	rq->body_state = BODY_WHOLE;
	rq->body_fd = -1;
	uuid_urn(rq->instance);
	rq->log = &kept->log;
	kept->log.instance = rq->instance;
	kept->log.path = identity->path;
	log_request_key(&kept->log, identity->key);
	scope_tag(identity->scope, kept->log.scope);
	if ((rc = store_request(
		 store, identity, id, &kept->text, &kept->body)) != RC_OK ||
	    (rc = cut(kept)) != RC_OK)
		return rc;
	rq->method = kept_param_or_empty(rq, "REQUEST_METHOD");
	rq->query = kept_param_or_empty(rq, "QUERY_STRING");
	kept->log.method = request_param(rq, "REQUEST_METHOD");
	kept->log.peer = request_param(rq, "REMOTE_ADDR");
	instance = request_param(rq, KEPT_INSTANCE);
	if (instance != NULL && strlen(instance) < sizeof(rq->instance))
		memcpy(rq->instance, instance, strlen(instance) + 1);
	if (kept->body != NULL) {
		rq->body = spool_bytes(kept->body, &rc);
		rq->body_len = (size_t)spool_length(kept->body);
		rq->body_fd = spool_fd(kept->body);
	}
	return rc;
}

void
stored_request_free(struct stored_request *kept)
{
	log_request_clear(&kept->log);
	buf_free(&kept->text);
	free(kept->params);
	spool_free(kept->body);
}
