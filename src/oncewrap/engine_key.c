/*
 * The key of a guarded request, and whether a request has one; and the body as
 * JSON, read once, in memory that requests share.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "body.h"
#include "clock.h"
#include "key_search.h"
#include "leader.h"
#include "limit.h"
#include "store_operator.h"
#include "engine_impl.h"

/* --- JSON ----------------------------------------------------------------- */

static struct budget *
json_budget(const struct job *job)
{
	return job->rq->body_len > LIMIT_SPOOL_MEMORY ? job->engine->large_json
						      : job->engine->small_json;
}

/* The caller, on whatever route; before its scope is known, the address. */
static int64_t
json_caller(const struct job *job)
{
	int64_t number;

	return caller_number(store_secret(job->engine->store), job->scope.data,
		   request_param(job->rq, "REMOTE_ADDR"), "", &number) == RC_OK
	    ? number
	    : 0;
}

static bool
json_take_memory(struct job *job)
{
	const size_t cost = json_cost(job->rq->body_len);
	struct budget *budget = json_budget(job);
	bool taken = budget_take(budget, cost, 0, 0);

	if (!taken && engine_begin_waiting(job->engine)) {
		taken = budget_take(budget, cost, json_caller(job),
		    clock_mono() + job->conf->busy_timeout);
		engine_end_waiting(job->engine);
	}
	job->json_cost = taken ? cost : 0;
	job->json_refused = !taken;
	return taken;
}

static void
json_give_memory(struct job *job)
{
	if (job->json_cost != 0)
		budget_give(json_budget(job), job->json_cost);
	job->json_cost = 0;
}

enum rc
engine_read_json(struct job *job)
{
	const struct request *rq = job->rq;
	enum json_verdict verdict;

	if (job->json_known)
		return RC_OK;
	/* A large body takes long. */
	if (rq->body_len > LIMIT_SPOOL_MEMORY)
		leader_yield();
	if (rq->body == NULL && rq->body_len > 0)
		return RC_IO;
	if (!json_take_memory(job))
		return RC_LIMIT;
	verdict = json_read(&job->json, rq->body, rq->body_len);
	if (verdict != JSON_OK)
		json_give_memory(job);
	job->json_known = verdict != JSON_NO_MEMORY;
	return job->json_known ? RC_OK : RC_NOMEM;
}

void
engine_drop_json(struct job *job)
{
	json_free(job->json);
	job->json = NULL;
	job->json_known = false;
	json_give_memory(job);
}

/* --- the key -------------------------------------------------------------- */

static enum rc
search_form(struct job *job, struct key_search *search)
{
	struct body body;
	enum rc rc = RC_OK;

	body_open(&body, job->rq);
	while (rc == RC_OK && body_next(&body))
		rc = key_search_feed(search, body.bytes, body.n);
	if (rc == RC_OK)
		rc = body.rc;
	body_close(&body);
	return rc == RC_OK ? key_search_end(search) : rc;
}

static enum rc
search(struct job *job, struct key_search *search)
{
	const struct conf_route *rule = job->rule;
	enum key_needs needs;
	enum rc rc;

	rc = key_search_init(search, &rule->key_from, rule->key_syntax, job->rq,
	    store_secret(job->engine->store));
	if (rc != RC_OK)
		return rc;
	needs = key_search_needs(search, false);
	if (needs != KEY_NEEDS_NOTHING && job->rq->body_state != BODY_WHOLE) {
		job->verdict = KEY_ABSENT;
		return RC_OK;
	}
	switch (needs) {
	case KEY_NEEDS_NOTHING:
		break;
	case KEY_NEEDS_FORM:
		rc = search_form(job, search);
		break;
	case KEY_NEEDS_JSON:
		rc = engine_read_json(job);
		if (rc == RC_OK)
			rc = key_search_json(search, job->json);
		break;
	}
	if (rc == RC_OK)
		job->verdict =
		    key_search_find(search, rule, &job->key, &job->source);
	return rc;
}

enum rc
engine_find_key(struct job *job)
{
	struct key_search found;

	if (job->searched)
		return job->search_rc;
	job->searched = true;
	job->search_rc = search(job, &found);
	key_search_free(&found);
	return job->search_rc;
}

void
engine_note_key(struct job *job)
{
	if (job->rq->log != NULL && engine_find_key(job) == RC_OK &&
	    job->verdict == KEY_OK)
		log_request_key(job->rq->log, job->key.text);
}

void
engine_make_reference(struct job *job)
{
	const struct store_identity identity = { .scope = job->scope.data,
		.path = job->rq->path,
		.key = job->key.text };

	/* Without memory the instance stays what it is. */
	if (job->scope_rc == RC_OK && engine_find_key(job) == RC_OK &&
	    job->verdict == KEY_OK)
		(void)store_reference(job->engine->store, &identity,
		    job->rq->instance + strlen("urn:uuid:"));
}

static bool
is_of_page(const struct conf_source *source)
{
	return source->kind == CONF_FROM_FORM ||
	    source->kind == CONF_FROM_QUERY;
}

bool
engine_key_is_of_page(const struct job *job)
{
	const struct conf_key_from *from = &job->rule->key_from;
	const struct conf_alternative *a;

	if (job->source != NULL)
		return is_of_page(job->source);
	for (a = from->item; a < from->item + from->n; a++)
		if (a->n == 2 &&
		    (is_of_page(&a->part[0]) || is_of_page(&a->part[1])))
			return true;
	return false;
}

/* --- refusals ------------------------------------------------------------- */

/* Appends what fits. */
static void __attribute__((format(printf, 3, 4)))
key_append(char *out, size_t size, const char *format, ...)
{
	size_t n = strlen(out);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(out + n, size - n, format, ap);
	va_end(ap);
}

/* Names the media type of a body in which no key is looked for. */
static void
add_wrong_type(
    const struct job *job, const struct conf_source *source, char detail[512])
{
	const char *type = request_param(job->rq, "CONTENT_TYPE");

	if (type == NULL || *type == '\0')
		key_append(detail, 512,
		    " The body has no Content-Type, so no %s was looked for.",
		    key_search_kind(source->kind));
	else
		key_append(detail, 512,
		    " The Content-Type is %.100s, so no %s was looked for.",
		    type, key_search_kind(source->kind));
}

static bool
refuse_missing(struct job *job)
{
	const struct conf_key_from *from = &job->rule->key_from;
	const struct conf_alternative *a;
	char detail[512] = "This resource needs an idempotency key, in the ";
	const struct conf_source *misfit = NULL;
	unsigned j;

	for (a = from->item; a < from->item + from->n; a++)
		for (j = 0; j < a->n; j++) {
			key_append(detail, sizeof(detail), "%s%s %.100s",
			    j > 0                ? " with the "
				: a > from->item ? " or the "
						 : "",
			    key_search_kind(a->part[j].kind), a->part[j].name);
			if (!key_search_suits(&a->part[j], job->rq))
				misfit = &a->part[j];
		}
	key_append(detail, sizeof(detail), ".");
	if (misfit != NULL && job->rq->body_len > 0)
		add_wrong_type(job, misfit, detail);
	return engine_refuse(job, PROBLEM_KEY_MISSING, detail);
}

bool
engine_check_key(struct job *job)
{
	char detail[512] = "";
	enum rc rc;

	if ((rc = engine_find_key(job)) != RC_OK)
		return engine_refuse_store(job, rc);
	if (job->verdict == KEY_ABSENT)
		return refuse_missing(job);
	if (job->verdict != KEY_OK) {
		if (job->source != NULL)
			key_append(detail, sizeof(detail), "The %s %.200s: ",
			    key_search_kind(job->source->kind),
			    job->source->name);
		key_append(detail, sizeof(detail), "%s",
		    key_verdict_text(job->verdict));
		if (job->verdict == KEY_TOO_SHORT)
			key_append(detail, sizeof(detail),
			    " key_min_length is %u.",
			    job->rule->key_min_length);
		if (job->verdict == KEY_TOO_LONG)
			key_append(detail, sizeof(detail),
			    " key_max_length is %u.",
			    job->rule->key_max_length);
		return engine_refuse(job, PROBLEM_KEY_INVALID, detail);
	}
	job->reservation.identity.key = job->attempt.key = job->key.text;
	return true;
}
