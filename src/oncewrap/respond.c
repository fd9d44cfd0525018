/*
 * Makes responses from outcomes, refusals and records.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "date.h"
#include "fault.h"
#include "html.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "prefer.h"
#include "recent.h"
#include "route.h"

#include "respond.h"

/* --- the operator's own pages for problems -------------------------------- */

/*
 * A page is a file of the folder problem_pages.  Its name is made of the code
 * and of a language tag, which has letters, digits and hyphens only: see
 * prefer_languages().  It is a regular file of a bounded size in the folder
 * itself, and never a link or a device.  It is read anew for each problem, so a
 * page that is changed is shown without a reload.
 */
struct own_page {
	struct buf bytes;
	struct prefer_languages languages;
	char language[PREFER_TAG_LEN + 1];
	struct problem_template page; /* of the bytes; .bytes NULL: none */
};

/* Reads an open file.  NULL, or why it is no page. */
static const char *
page_load(int fd, struct buf *bytes)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) == -1)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is no regular file";
	if (st.st_size > LIMIT_PROBLEM_PAGE)
		return "it is longer than 64K";
	if (buf_reserve(bytes, (size_t)st.st_size + 1) != RC_OK)
		return "no memory";
	n = read(fd, bytes->data, (size_t)st.st_size);
	if (n == -1)
		return strerror(errno);
	buf_commit(bytes, (size_t)n);
	return NULL;
}

/* language: "" for the file without one.  False: there is no such page. */
static bool
page_try(struct own_page *file, int folder, const char *stem,
    const char *language, const struct request *rq)
{
	char name[128];
	const char *why;
	int fd;

	(void)snprintf(name, sizeof(name), "%s%s%s.html", stem,
	    *language != '\0' ? "." : "", language);
	fd = openat(folder, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1 && errno == ENOENT)
		return false;
	buf_clear(&file->bytes);
	if (fd != -1) {
		why = page_load(fd, &file->bytes);
		close(fd);
	} else
		why =
		    errno == ELOOP ? "it is a symbolic link" : strerror(errno);
	if (why != NULL) {
		log_event(LOG_WARN, "problem-page", rq->log,
		    LOG_S("file", name), LOG_S("why", why));
		return false;
	}
	file->page.bytes = file->bytes.data;
	file->page.len = file->bytes.len;
	file->page.language = language;
	return true;
}

/* Removes the last subtag, and a single letter before it (RFC 4647, section
 * 3.4).  False: there is no other. */
static bool
page_shorten(char *tag)
{
	char *hyphen = strrchr(tag, '-');

	if (hyphen == NULL)
		return false;
	*hyphen = '\0';
	if (hyphen - tag > 2 && hyphen[-2] == '-')
		hyphen[-2] = '\0';
	return true;
}

/* The pages without a language, and ours, stand for English. */
static bool
page_try_all(struct own_page *file, int folder, const char *stem,
    const struct request *rq)
{
	char *tag = file->language;
	bool english = false;

	for (size_t i = 0; i < file->languages.n && !english; i++) {
		(void)stpcpy(tag, file->languages.item[i].tag);
		do {
			if (page_try(file, folder, stem, tag, rq))
				return true;
			english = strcmp(tag, "en") == 0;
		} while (page_shorten(tag));
	}
	return page_try(file, folder, stem, "", rq);
}

/* Reads the page of that code in the language that the client prefers.  What
 * cannot be read is logged, and the next file counts.  The folder may be slow,
 * so the loop must not read it. */
static void
page_read(struct own_page *file, const char *folder, enum problem_code code,
    const struct request *rq)
{
	int fd;

	memset(file, 0, sizeof(*file));
	buf_init(&file->bytes, LIMIT_PROBLEM_PAGE + 1);
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1) {
		log_event(LOG_WARN, "problem-page", rq->log,
		    LOG_S("file", folder), LOG_S("why", strerror(errno)));
		return;
	}
	prefer_languages(rq, &file->languages);
	if (!page_try_all(file, fd, problem_name(code), rq))
		(void)page_try_all(file, fd, "any", rq);
	close(fd);
}

/* --- problems ------------------------------------------------------------- */

#define REFUSED(unused, id, name) [PROBLEM_##id] = METRICS_REFUSED_##id,
static const enum metrics_id refused[] = { METRICS_CODES(REFUSED, ) };

void
respond_count(const struct request *rq, struct metrics_route *route,
    enum problem_code code, bool unknown, const char *detail)
{
	assert((size_t)code < sizeof(refused) / sizeof(refused[0]) &&
	    code != PROBLEM_NONE);
	recent_count(unknown ? RECENT_UNKNOWN : RECENT_REFUSAL);
	metrics_count_route(route, refused[code]);
	log_event(LOG_INFO, "problem", rq->log,
	    LOG_S("code", problem_name(code)), LOG_S("detail", detail));
}

/* NULL: the request is for oncewrap itself, or has no path. */
static struct metrics_route *
route_of(const struct conf *conf, const struct request *rq)
{
	if (rq->invalid != NULL || route_is_admin(conf, rq->path) ||
	    route_is_status(conf, rq->path))
		return NULL;
	return route_find(conf, rq->path)->metrics;
}

void
respond_problem(struct answer *answer, struct problem *problem,
    const struct conf *conf, const struct request *rq)
{
	struct response *response = &answer->response;
	struct own_page file;
	enum rc rc;

	problem->instance = rq->instance;
	problem->key = rq->log != NULL ? rq->log->key : NULL;
	problem->html = prefer_html(rq);
	if (rq->log != NULL)
		rq->log->status = problem_status(problem, conf->dialect);
	respond_count(rq, route_of(conf, rq), problem->code,
	    problem->unknown || problem->code == PROBLEM_OUTCOME_UNKNOWN,
	    problem_detail(problem));
	if (problem->html && conf->problem_pages != NULL) {
		page_read(&file, conf->problem_pages, problem->code, rq);
		problem->page = file.page;
	}
	rc = problem_make(
	    problem, conf->link, conf->dialect, response, &answer->text);
	if (problem->html && conf->problem_pages != NULL)
		buf_free(&file.bytes);
	if (rc == RC_OK)
		return;
	/* No memory for a few hundred bytes: send the status without a body. */
	response_free(response);
	response_init(response);
	response->status = 503;
}

void
respond_not_kept(struct answer *answer, const struct record *record,
    const struct conf *conf, const struct request *rq)
{
	struct problem problem;

	memset(&problem, 0, sizeof(problem));
	problem.code = PROBLEM_RESPONSE_NOT_KEPT;
	problem.original_status = record->status;
	problem.completed_at = record->updated_at;
	respond_problem(answer, &problem, conf, rq);
}

void
respond_log(const struct request *rq, const char *event, int status)
{
	if (rq->log != NULL)
		rq->log->status = status;
	log_values(LOG_INFO, event, rq->log, NULL, 0);
}

void
respond_refuse(struct answer *answer, enum problem_code code,
    const char *detail, const struct conf *conf, const struct request *rq)
{
	struct problem problem;

	memset(&problem, 0, sizeof(problem));
	problem.code = code;
	problem.detail = detail;
	respond_problem(answer, &problem, conf, rq);
}

/* --- stored responses ----------------------------------------------------- */

/* A local redirect is for the web server and has no field but its Location (RFC
 * 3875, section 6.2.2), so no field is added to it. */

enum rc
respond_fetch(struct store *store, const struct store_identity *identity,
    const struct record *record, struct store_inline_answer *found,
    struct answer *answer)
{
	enum rc rc;

	FAULT(REPLAY_FOUND);
	if ((rc = store_make_durable(store, record)) != RC_OK)
		return rc;
	if (found != NULL && found->is) {
		answer->response = found->response;
		answer->text = found->body;
		store_inline_answer_init(found);
		return RC_OK;
	}
	rc = store_answer(
	    store, identity, record->id, &answer->response, &answer->spool);
	if (rc != RC_OK) {
		response_free(&answer->response);
		response_init(&answer->response);
	}
	return rc;
}

/* Adds Idempotency-Expires: expires_at is store time, 0 for never. */
static void
add_expires(struct store *store, struct response *response, int64_t expires_at)
{
	char date[DATE_IMF_LEN + 1];

	if (response->kind == RESPONSE_LOCAL_REDIRECT || expires_at == 0)
		return;
	date_put_imf(store_wall(store, expires_at), date);
	(void)response_add(response, "Idempotency-Expires", date);
}

/*
 * The expiry of an unconfirmed key is not known yet: its retention begins when
 * the key is confirmed, so no earlier than now.
 */
static int64_t
write_expiry(struct store *store, const struct conf_route *rule,
    const struct record *record)
{
	int64_t earliest = store_now(store) + rule->retention;

	if (record->unconfirmed && earliest < record->expires_at)
		return earliest;
	return record->expires_at;
}

void
respond_mark_replay(struct store *store, const struct conf_route *rule,
    const struct record *record, struct answer *answer)
{
	const struct conf_list *drop = &rule->replay_drop;
	struct response *response = &answer->response;

	if (response->kind == RESPONSE_LOCAL_REDIRECT)
		return;
	FAULT(REPLAY_READ);
	if (response->as_given)
		response_remove(
		    response, (const char *const *)drop->item, drop->n);
	add_expires(store, response, write_expiry(store, rule, record));
	(void)response_add(response, "Idempotent-Replayed", "true");
}

/* --- the answer of an attempt --------------------------------------------- */

/* Why the handler's response is missing; the numbers are for its authors. */
static void
describe_end(const struct attempt *at, char *out, size_t size)
{
	const struct run_facts *run = &at->facts.run;
	const char *why = at->outcome.why;

	if (run->end == RUN_TIMEOUT)
		(void)snprintf(out, size, "%s, %" PRId64 " ms", why,
		    at->rule->handler.timeout);
	else if (run->end == RUN_OUTPUT_LIMIT)
		(void)snprintf(out, size, "%s, %" PRIu64 " bytes", why,
		    at->rule->handler.max_output);
	else if (run->end == RUN_SIGNALED)
		(void)snprintf(out, size, "%s, %d", why, run->signal);
	else if (run->end == RUN_EXITED)
		(void)snprintf(
		    out, size, "%s (exit status %d)", why, run->exit_status);
	else
		(void)snprintf(out, size, "%s", why);
}

static void
problem_of(struct attempt *at, struct answer *answer)
{
	struct problem problem;
	char detail[256];

	describe_end(at, detail, sizeof(detail));
	memset(&problem, 0, sizeof(problem));
	problem.code = at->outcome.problem;
	problem.status = at->outcome.status;
	problem.detail = detail;
	problem.unknown = at->outcome.state == RECORD_UNKNOWN;
	problem.acted = at->facts.acted_before;
	respond_problem(answer, &problem, at->conf, at->rq);
}

/* Reads the response that the handler stored itself, which is durable; false:
 * it cannot be read. */
static bool
fetch_body(struct attempt *at, struct answer *answer)
{
	const struct store_identity identity = { at->scope, at->rq->path,
		at->key };
	char why[512];
	enum rc rc = store_answer(at->store, &identity, at->lease.id,
	    &answer->response, &answer->spool);

	if (rc == RC_OK)
		return true;
	log_event(LOG_ERROR, "store-unavailable", at->rq->log,
	    LOG_S("why", store_why(at->store, rc, why, sizeof(why))));
	/* Not store-unavailable: of that one, users know that nothing ran. */
	respond_refuse(answer, PROBLEM_OUTCOME_NOT_RECORDED,
	    "The request was answered, but its answer cannot be read now.",
	    at->conf, at->rq);
	return false;
}

void
respond_attempt(struct attempt *at, struct answer *answer)
{
	if (at->recorded != RC_OK) {
		respond_refuse(answer, PROBLEM_OUTCOME_NOT_RECORDED, NULL,
		    at->conf, at->rq);
		return;
	}
	if (at->outcome.problem != PROBLEM_NONE) {
		problem_of(at, answer);
		return;
	}
	if (at->answered && !fetch_body(at, answer))
		return;
	if (at->answered)
		respond_log(at->rq, "answered", answer->response.status);
	if (!at->answered) {
		response_free(&answer->response);
		answer->response = at->response;
		response_init(&at->response);
		answer->spool = at->output;
		at->output = NULL;
	}
	if (at->outcome.state == RECORD_COMPLETED)
		add_expires(at->store, &answer->response, at->done.expires_at);
}

/* --- unguarded requests --------------------------------------------------- */

/* A page that is not there or not allowed is a person's mistake as often as a
 * program's, so a browser gets it as HTML.  A program that failed is told in
 * text, as fcgiwrap does. */
static enum rc
plain_page(struct buf *out, int status, const char *sentence)
{
	const char *reason = response_reason(status);
	enum rc rc;

	rc = buf_addf(out,
	    "<!DOCTYPE html>\n<html lang=\"en\">\n<title>%d %s</title>\n"
	    "<h1>%s</h1>\n<p>",
	    status, reason, reason);
	if (rc == RC_OK)
		rc = html_value(out, sentence);
	return rc == RC_OK ? buf_adds(out, "</p>\n</html>\n") : rc;
}

static void
plain_response(
    struct answer *answer, int status, const char *sentence, bool html)
{
	struct response *response = &answer->response;
	struct buf *text = &answer->text;
	enum rc rc;

	response->status = status;
	rc = html ? plain_page(text, status, sentence)
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
plain_log(
    const struct request *rq, int status, const char *code, const char *why)
{
	if (rq->log != NULL)
		rq->log->status = status;
	log_event(LOG_INFO, "problem", rq->log, LOG_S("code", code),
	    LOG_S("detail", why));
}

void
respond_not_started(struct answer *answer, const struct run_facts *facts,
    const struct request *rq)
{
	switch (facts->error) {
	case ENOENT:
	case ENOTDIR:
		plain_response(
		    answer, 404, "There is no such program.", prefer_html(rq));
		break;
	case EACCES:
	case EPERM:
	case EISDIR:
		plain_response(answer, 403, "This may not be run as a program.",
		    prefer_html(rq));
		break;
	default:
		plain_response(
		    answer, 502, "The program could not be started.", false);
		break;
	}
	plain_log(rq, answer->response.status, "handler-not-started",
	    "The program could not be started.");
}

void
respond_no_answer(struct answer *answer, const struct run_facts *facts,
    const struct request *rq)
{
	const bool late = facts->end == RUN_TIMEOUT;
	const char *sentence = late
	    ? "The program did not answer in time."
	    : "The program ended without an answer that can be read.";

	plain_response(answer, late ? 504 : 502, sentence, false);
	plain_log(rq, answer->response.status,
	    late ? "handler-timeout" : "handler-failed", sentence);
}
