/*
 * oncectl checkpoint, emit and respond: for handlers in a language without
 * SQLite.
 *
 * They know the database and the handler's token, and open no store: a handler
 * may write the database only.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "oncectl_answer.h"
#include "handler_api.h"
#include "resolve.h"
#include "oncectl.h"

/* Finds the token, before any input is read; NULL: there is none. */
static const char *
find_token(const struct oncectl *ctl)
{
	const char *token = getenv("ONCE_TOKEN");

	if (token == NULL)
		warnx("%s: ONCE_TOKEN is not set: this is for handlers",
		    ctl->command);
	return token;
}

/* Opens the database; returns -1, or the exit status. */
static int
handler_api_begin(const struct oncectl *ctl, struct handler_api **api)
{
	char why[512];
	enum rc rc;

	rc = handler_api_open(api, ctl->database, ctl->wait, why, sizeof(why));
	if (rc == RC_OK)
		return -1;
	warnx("%s", why);
	return rc == RC_BUSY || rc == RC_NOMEM ? ONCECTL_AGAIN
					       : ONCECTL_REFUSED;
}

/* Returns the exit status for the result rc. */
static int
handler_api_end(const struct oncectl *ctl, struct handler_api *api, enum rc rc)
{
	if (rc != RC_OK)
		warnx("%s: %s", ctl->command, handler_api_why(api));
	handler_api_close(api);
	switch (rc) {
	case RC_OK:
		return ONCECTL_DONE;
	case RC_BUSY:
	case RC_FULL:
	case RC_NOMEM:
		return ONCECTL_AGAIN;
	case RC_LIMIT:
	case RC_IO:
	case RC_READONLY:
	case RC_CORRUPT:
	case RC_REPLACED:
	case RC_WENT_BACK:
	case RC_VERSION:
	case RC_NOTFOUND:
	case RC_EXISTS:
	case RC_LOST:
	case RC_PENDING:
	case RC_UNRECORDED:
	case RC_UNSAFE:
	case RC_TIMEOUT:
	case RC_CLOSED:
	case RC_INVALID:
		break;
	}
	return ONCECTL_REFUSED;
}

/* --- effects ------------------------------------------------------------ */

/* The payloads of effects, and their topics. */
struct effects {
	struct oncectl_input in[ONCECTL_EMITS];
	struct handler_api_effect effect[ONCECTL_EMITS];
	size_t n;
};

static void
effects_free(struct effects *e)
{
	for (size_t i = 0; i < e->n; i++)
		oncectl_answer_free(&e->in[i]);
}

/* Reads one more payload; file NULL: standard input. */
static bool
effects_add(struct effects *e, const char *topic, const char *file)
{
	struct oncectl_input *in = &e->in[e->n];
	struct handler_api_effect *effect = &e->effect[e->n];

	memset(in, 0, sizeof(*in));
	in->name = file;
	effect->topic = topic;
	e->n++;
	/* One byte more than the limit, so that the database refuses it. */
	if (!oncectl_answer_read(in, SAY_MAX + 1) ||
	    (effect->payload = oncectl_answer_bytes(in)) == NULL)
		return false;
	effect->len = (size_t)spool_length(in->spool);
	return true;
}

/* Reads the effects of the --emit options. */
static bool
effects_read(struct effects *e, const struct oncectl *ctl)
{
	e->n = 0;
	for (size_t i = 0; i < ctl->nemits; i++)
		if (!effects_add(e, ctl->emits[i].topic, ctl->emits[i].file))
			return false;
	return true;
}

/* --- what a handler says ------------------------------------------------- */

int
oncectl_checkpoint(struct oncectl *ctl)
{
	struct effects effects;
	struct handler_api *api;
	const char *token;
	int status = ONCECTL_REFUSED;

	if (ctl->nargs != 1) {
		warnx("checkpoint: which recovery point?");
		return ONCECTL_USAGE;
	}
	if ((token = find_token(ctl)) == NULL)
		return ONCECTL_USAGE;
	if (effects_read(&effects, ctl) &&
	    (status = handler_api_begin(ctl, &api)) == -1)
		status = handler_api_end(ctl, api,
		    handler_api_checkpoint(
			api, token, ctl->arg[0], effects.effect, effects.n));
	effects_free(&effects);
	return status;
}

int
oncectl_emit(struct oncectl *ctl)
{
	struct effects effects = { .n = 0 };
	struct handler_api *api;
	const char *token;
	int status = ONCECTL_REFUSED;

	if (ctl->nargs != 1) {
		warnx("emit: which topic?");
		return ONCECTL_USAGE;
	}
	if ((token = find_token(ctl)) == NULL)
		return ONCECTL_USAGE;
	if (effects_add(&effects, ctl->arg[0], NULL) &&
	    (status = handler_api_begin(ctl, &api)) == -1)
		status = handler_api_end(
		    ctl, api, handler_api_emit(api, token, effects.effect));
	effects_free(&effects);
	return status;
}

/* Whether it can be a response of the handler's own; removes the fields that
 * the web server makes. */
static bool
is_document(struct response *r, const struct cgihead *head)
{
	static const char *const made[] = { "Content-Length" };

	if (r->kind == RESPONSE_LOCAL_REDIRECT)
		return oncectl_answer_bad(
		    "a local redirect is no answer, it names one");
	if (head->not_replayable)
		return oncectl_answer_bad(
		    "X-Sendfile and its kin name a file that may change");
	response_remove(r, made, 1);
	return true;
}

/* Reads a response from standard input. */
static bool
read_response(struct oncectl_input *in, struct response *r)
{
	char why[RESOLVE_WHY];
	struct cgihead head;

	if (!oncectl_answer_read(in, SAY_MAX + 1 + LIMIT_HEAD))
		return false;
	if (!resolve_parse(in->spool, in->length, r, &head, why))
		return oncectl_answer_bad(why);
	return is_document(r, &head);
}

int
oncectl_respond(struct oncectl *ctl)
{
	struct oncectl_input in = { NULL, 0, NULL };
	int status = ONCECTL_REFUSED;
	struct effects effects;
	struct response r;
	struct handler_api *api;
	const char *token = find_token(ctl);

	if (token == NULL)
		return ONCECTL_USAGE;
	response_init(&r);
	if (!effects_read(&effects, ctl) || !read_response(&in, &r))
		goto out;
	if ((status = handler_api_begin(ctl, &api)) == -1)
		status = handler_api_end(ctl, api,
		    handler_api_respond(api, token, r.status, r.fields.data,
			r.body, r.body_len, effects.effect, effects.n));
out:
	response_free(&r);
	effects_free(&effects);
	oncectl_answer_free(&in);
	return status;
}
