/*
 * A page that is not there or not allowed is a person's mistake as often as a
 * program's, so a browser gets it as HTML.  A program that failed is told in
 * text, as fcgiwrap does.
 */
#include "config.h"

#include <errno.h>

#include "html.h"
#include "log.h"
#include "prefer.h"

#include "plain.h"

static enum rc
add_page(struct buf *out, int status, const char *sentence)
{
	const char *reason = response_reason(status);
	enum rc rc;

	rc = buf_addf(out,
	    "<!DOCTYPE html>\n<html lang=\"en\">\n<title>%d %s</title>\n"
	    "<h1>%s</h1>\n<p>",
	    status, reason, reason);
	if (rc == RC_OK)
		rc = html_text(out, sentence);
	return rc == RC_OK ? buf_adds(out, "</p>\n</html>\n") : rc;
}

static void
plain_make(struct answer *answer, int status, const char *sentence, bool html)
{
	struct response *response = &answer->response;
	struct buf *text = &answer->text;
	enum rc rc;

	response->status = status;
	rc = html ? add_page(text, status, sentence)
		  : buf_addf(text, "%d %s\n%s\n", status,
			response_reason(status), sentence);
	if (rc == RC_OK)
		rc = response_add(response, "Content-Type",
		    html ? "text/html; charset=utf-8" : "text/plain");
	/* Without memory for a few words the status must do. */
	if (rc != RC_OK)
		return;
	response->body = text->data;
	response->body_len = text->len;
}

static void
tell(const struct request *rq, int status, const char *code, const char *why)
{
	if (rq->log != NULL)
		rq->log->status = status;
	log_event(LOG_INFO, "problem", rq->log, LOG_S("code", code),
	    LOG_S("detail", why));
}

void
plain_not_started(struct answer *answer, const struct run_facts *facts,
    const struct request *rq)
{
	switch (facts->error) {
	case ENOENT:
	case ENOTDIR:
		plain_make(
		    answer, 404, "There is no such program.", prefer_html(rq));
		break;
	case EACCES:
	case EPERM:
	case EISDIR:
		plain_make(answer, 403, "This may not be run as a program.",
		    prefer_html(rq));
		break;
	default:
		plain_make(
		    answer, 502, "The program could not be started.", false);
		break;
	}
	tell(rq, answer->response.status, "handler-not-started",
	    "The program could not be started.");
}

void
plain_failed(struct answer *answer, const struct run_facts *facts,
    const struct request *rq)
{
	const bool late = facts->end == RUN_TIMEOUT;
	const char *sentence = late
	    ? "The program did not answer in time."
	    : "The program ended without an answer that can be read.";

	plain_make(answer, late ? 504 : 502, sentence, false);
	tell(rq, answer->response.status,
	    late ? "handler-timeout" : "handler-failed", sentence);
}
