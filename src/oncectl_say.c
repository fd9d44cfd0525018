/*
 * oncectl checkpoint, emit and respond: what a handler says of its own run, in
 * a language that has no SQLite.
 *
 * They know the database and the handler's token, and open no store: a handler
 * may write the database and no more.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "oncectl_answer.h"
#include "say.h"
#include "oncectl.h"

/* Opens the database and gets the token; -1, or the exit status. */
static int
begin(const struct oncectl *ctl, struct say **say, const char **token)
{
	char why[512];
	enum rc rc;

	*token = getenv("ONCE_TOKEN");
	if (*token == NULL) {
		warnx("%s: ONCE_TOKEN is not set: this is for handlers",
		    ctl->command);
		return ONCECTL_USAGE;
	}
	rc = say_open(say, ctl->database, ctl->wait, why, sizeof(why));
	if (rc == RC_OK)
		return -1;
	warnx("%s", why);
	return rc == RC_BUSY || rc == RC_NOMEM ? ONCECTL_AGAIN
					       : ONCECTL_REFUSED;
}

/* The exit status for how it ended. */
static int
end(const struct oncectl *ctl, struct say *say, enum rc rc)
{
	if (rc != RC_OK)
		warnx("%s: %s", ctl->command, say_why(say));
	say_close(say);
	switch (rc) {
	case RC_OK:
		return ONCECTL_DONE;
	case RC_BUSY:
	case RC_FULL:
	case RC_NOMEM:
		return ONCECTL_AGAIN;
	case RC_LIMIT:
	case RC_IO:
	case RC_CORRUPT:
	case RC_VERSION:
	case RC_NOTFOUND:
	case RC_EXISTS:
	case RC_LOST:
	case RC_PENDING:
	case RC_TIMEOUT:
	case RC_CLOSED:
	case RC_INVALID:
		break;
	}
	return ONCECTL_REFUSED;
}

int
oncectl_checkpoint(struct oncectl *ctl)
{
	struct say *say;
	const char *token;
	int status;

	if (ctl->nargs != 1) {
		warnx("checkpoint: which recovery point?");
		return ONCECTL_USAGE;
	}
	if ((status = begin(ctl, &say, &token)) != -1)
		return status;
	return end(ctl, say, say_checkpoint(say, token, ctl->arg[0]));
}

int
oncectl_emit(struct oncectl *ctl)
{
	struct oncectl_input in = { NULL, 0 };
	struct say *say;
	const char *token;
	const void *payload;
	enum rc rc = RC_OK;
	int status;

	if (ctl->nargs != 1) {
		warnx("emit: which topic?");
		return ONCECTL_USAGE;
	}
	/* One byte too many, for the view to see. */
	if (!oncectl_answer_read(&in, ctl->spool_dir, SAY_MAX + 1)) {
		status = ONCECTL_REFUSED;
		goto out;
	}
	payload = spool_bytes(in.spool, &rc);
	if (rc != RC_OK) {
		oncectl_answer_bad(rc_text(rc));
		status = ONCECTL_REFUSED;
		goto out;
	}
	if ((status = begin(ctl, &say, &token)) == -1)
		status = end(ctl, say,
		    say_emit(say, token, ctl->arg[0], payload,
			(size_t)spool_length(in.spool)));
out:
	oncectl_answer_free(&in);
	return status;
}

/* Whether it can be an answer of its own, and without what the web server
 * makes. */
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

int
oncectl_respond(struct oncectl *ctl)
{
	struct oncectl_input in = { NULL, 0 };
	int status = ONCECTL_REFUSED;
	struct response r;
	struct cgihead head;
	struct say *say;
	const char *token;

	response_init(&r);
	if (!oncectl_answer_read(
		&in, ctl->spool_dir, SAY_MAX + 1 + LIMIT_HEAD) ||
	    !oncectl_answer_parse(&in, &r, &head) || !is_document(&r, &head))
		goto out;
	if ((status = begin(ctl, &say, &token)) == -1)
		status = end(ctl, say,
		    say_respond(say, token, r.status, r.fields.data, r.body,
			r.body_len));
out:
	response_free(&r);
	oncectl_answer_free(&in);
	return status;
}
