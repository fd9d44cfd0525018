/*
 * oncectl checkpoint, emit and respond: for handlers in a language without
 * SQLite.  And what comes from standard input or a file, for resolve, too.
 *
 * They know the database and the handler's token, and open no store: a handler
 * may write the database only.
 */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler_api.h"
#include "limit.h"
#include "resolve.h"
#include "oncectl.h"

#define READ_SIZE 65536

/* --- input ---------------------------------------------------------------- */

bool
oncectl_input_bad(const struct oncectl_input *in, const char *why)
{
	warnx("%s: %s", in->name != NULL ? in->name : "standard input", why);
	return false;
}

static bool
input_read(int fd, struct oncectl_input *in, uint64_t max)
{
	char bytes[READ_SIZE];
	uint64_t room;
	ssize_t n;
	enum rc rc;

	in->length = 0;
	if ((in->spool = spool_new()) == NULL)
		return oncectl_input_bad(in, rc_text(RC_NOMEM));
	for (;;) {
		n = read(fd, bytes, sizeof(bytes));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return oncectl_input_bad(in, strerror(errno));
		if (n == 0)
			return true;
		in->length += (uint64_t)n;
		room = max - spool_length(in->spool);
		if ((uint64_t)n > room)
			n = (ssize_t)room;
		rc = spool_write(in->spool, bytes, (size_t)n);
		if (rc != RC_OK)
			return oncectl_input_bad(in, rc_text(rc));
	}
}

bool
oncectl_input_read(struct oncectl_input *in, uint64_t max)
{
	bool good;
	int fd;

	if (in->name == NULL)
		return input_read(STDIN_FILENO, in, max);
	if ((fd = open(in->name, O_RDONLY | O_CLOEXEC)) == -1)
		return oncectl_input_bad(in, strerror(errno));
	good = input_read(fd, in, max);
	close(fd);
	return good;
}

void
oncectl_input_free(struct oncectl_input *in)
{
	spool_free(in->spool);
	in->spool = NULL;
}

/* --- what a handler writes ----------------------------------------------- */

struct handler_input {
	const char *token, *point;
	bool responds;
	/* the effects, and the payloads that they point into */
	struct handler_api_effect effect[ONCECTL_EMITS];
	struct oncectl_input payload[ONCECTL_EMITS];
	size_t n;
	/* if it responds */
	struct oncectl_input in;
	struct response response;
};

static void
handler_input_free(struct handler_input *s)
{
	for (size_t i = 0; i < s->n; i++)
		oncectl_input_free(&s->payload[i]);
	response_free(&s->response);
	oncectl_input_free(&s->in);
}

/* Reads one more payload; file NULL: standard input. */
static bool
add_effect(struct handler_input *s, const char *topic, const char *file)
{
	struct oncectl_input *in = &s->payload[s->n];
	struct handler_api_effect *effect = &s->effect[s->n];
	enum rc rc = RC_OK;

	in->name = file;
	effect->topic = topic;
	s->n++;
	/* One byte more than the limit, so that the database refuses it. */
	if (!oncectl_input_read(in, HANDLER_API_MAX + 1))
		return false;
	effect->payload = spool_bytes(in->spool, &rc);
	if (rc != RC_OK)
		return oncectl_input_bad(in, rc_text(rc));
	if (effect->payload == NULL)
		effect->payload = "";
	effect->len = (size_t)spool_length(in->spool);
	return true;
}

/* Reads a response from standard input, without the fields that the web server
 * makes.  False: it cannot be a response of the handler's own. */
static bool
add_response(struct handler_input *s)
{
	static const char *const made[] = { "Content-Length" };
	char why[RESOLVE_WHY];
	struct cgihead head;

	if (!oncectl_input_read(&s->in, HANDLER_API_MAX + 1 + LIMIT_HEAD))
		return false;
	if (!resolve_parse(s->in.spool, s->in.length, &s->response, &head, why))
		return oncectl_input_bad(&s->in, why);
	if (s->response.kind == RESPONSE_LOCAL_REDIRECT)
		return oncectl_input_bad(
		    &s->in, "a local redirect is no answer, it names one");
	if (head.not_replayable)
		return oncectl_input_bad(&s->in,
		    "X-Sendfile and its kin name a file that may change");
	response_remove(&s->response, made, 1);
	return true;
}

/* Opens the database and writes it; returns the exit status. */
static int
write_to(const struct oncectl *ctl, const struct handler_input *s)
{
	const struct response *r = &s->response;
	const struct handler_api_write w = {
		.token = s->token,
		.point = s->point,
		.responds = s->responds,
		.status = r->status,
		.headers = r->fields.data,
		.body = r->body,
		.len = r->body_len,
		.effects = s->effect,
		.neffects = s->n,
	};
	char why[512];
	enum rc rc =
	    handler_api_say(ctl->database, ctl->wait, &w, why, sizeof(why));

	if (rc != RC_OK)
		warnx("%s: %s", ctl->command, why);
	if (rc == RC_BUSY || rc == RC_FULL || rc == RC_NOMEM)
		return ONCECTL_AGAIN;
	return rc == RC_OK ? ONCECTL_DONE : ONCECTL_REFUSED;
}

int
oncectl_handler(struct oncectl *ctl)
{
	const bool emits = strcmp(ctl->command, "emit") == 0;
	struct handler_input s = { .token = getenv("ONCE_TOKEN"),
		.responds = strcmp(ctl->command, "respond") == 0 };
	int status = ONCECTL_REFUSED;
	bool good = true;

	if (!s.responds && ctl->nargs != 1)
		return oncectl_refuse(ONCECTL_USAGE, "%s: which %s?",
		    ctl->command, emits ? "topic" : "recovery point");
	if (s.token == NULL) { /* before any input is read */
		return oncectl_refuse(ONCECTL_USAGE,
		    "%s: ONCE_TOKEN is not set: this is for handlers",
		    ctl->command);
	}
	response_init(&s.response);
	if (emits)
		good = add_effect(&s, ctl->arg[0], NULL);
	else if (!s.responds)
		s.point = ctl->arg[0];
	for (size_t i = 0; i < ctl->nemits && good; i++)
		good = add_effect(&s, ctl->emits[i].topic, ctl->emits[i].file);
	if (good && s.responds)
		good = add_response(&s);
	if (good)
		status = write_to(ctl, &s);
	handler_input_free(&s);
	return status;
}
