/*
 * The key of a guarded request, and whether a request has one; and the body as
 * JSON, read once, in memory that requests share.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "key_search.h"
#include "limit.h"
#include "media.h"
#include "store_operator.h"
#include "engine_impl.h"

/* --- JSON ----------------------------------------------------------------- */

/* Bodies that are longer than LIMIT_SPOOL_MEMORY share so many bytes.  Of the
 * others few are read at once: see SMALL_BODY. */
#define JSON_MEMORY (LIMIT_JSON_MEMORY - LIMIT_JSON_SMALL)

static bool
json_fits(const struct engine *engine, size_t cost)
{
	return cost <= JSON_MEMORY - engine->json_used;
}

static void
memory_take(struct job *job, size_t cost)
{
	job->engine->json_used += cost;
	job->engine->json_last = job->json_caller;
	job->json_cost = cost;
}

/* The caller, on whatever route; before its scope is known, the address. */
static int64_t
json_caller(const struct job *job)
{
	return scope_caller_number(store_secret(job->engine->store),
	    job->scope.data, request_param(job->rq, "REMOTE_ADDR"), "");
}

/* The job that is next: the first to come, but callers alternate. */
static struct job *
json_next(const struct engine *engine)
{
	struct job *job;

	TAILQ_FOREACH(job, &engine->memory, link)
	if (job->json_caller != engine->json_last)
		return job;
	return TAILQ_FIRST(&engine->memory);
}

/* Its time is up, or the process stops. */
static enum place
json_refuse(struct job *job)
{
	engine_note_refused(job, PROBLEM_OVERLOADED, "json", false);
	(void)engine_refuse(job, PROBLEM_OVERLOADED,
	    "Too many large JSON bodies are being compared; this request ran "
	    "nothing.");
	return PLACE_ANSWER;
}

bool
engine_take_memory(struct job *job, enum place then, enum place *next)
{
	struct engine *engine = job->engine;
	const size_t cost = json_cost(job->rq->body_len);

	if (cost == 0)
		return true;
	job->json_caller = json_caller(job);
	if (TAILQ_EMPTY(&engine->memory) && json_fits(engine, cost)) {
		memory_take(job, cost);
		return true;
	}
	job->timer.due = engine_timer_due;
	loop_set(engine->loop, &job->timer,
	    loop_now(engine->loop) + job->conf->busy_timeout);
	job->json_then = then;
	*next = engine_wait_in(job, &engine->memory, PLACE_MEMORY);
	return false;
}

enum place
engine_memory(struct job *job)
{
	return job->json_cost != 0 ? job->json_then : json_refuse(job);
}

void
engine_give_memory(struct job *job)
{
	struct engine *engine = job->engine;
	struct job *next;
	size_t cost;

	if (job->json_cost == 0)
		return;
	engine->json_used -= job->json_cost;
	job->json_cost = 0;
	while ((next = json_next(engine)) != NULL) {
		cost = json_cost(next->rq->body_len);
		if (!json_fits(engine, cost))
			break;
		memory_take(next, cost);
		engine_wake(next);
	}
}

/* Whether the key may be looked for in a body as JSON. */
static bool
key_may_be_json(const struct conf_key_from *from)
{
	for (unsigned i = 0; i < from->n; i++)
		for (unsigned j = 0; j < from->item[i].n; j++)
			if (from->item[i].part[j].kind == CONF_FROM_JSON)
				return true;
	return false;
}

bool
engine_may_read_json(const struct job *job)
{
	const char *type = request_param(job->rq, "CONTENT_TYPE");

	if (key_may_be_json(&job->rule->key_from))
		return true;
	if (job->rule->fingerprint != CONF_FINGERPRINT_VALUE)
		return false;
	return type != NULL && media_is_json(type);
}

enum rc
engine_read_json(struct job *job)
{
	const struct request *rq = job->rq;

	if (job->json_known)
		return RC_OK;
	if (rq->body == NULL && rq->body_len > 0)
		return RC_IO;
	job->json_known =
	    json_read(&job->json, rq->body, rq->body_len) != JSON_NO_MEMORY;
	return job->json_known ? RC_OK : RC_NOMEM;
}

void
engine_drop_json(struct job *job)
{
	json_free(job->json);
	job->json = NULL;
	job->json_known = false;
}

/* --- the key -------------------------------------------------------------- */

static enum rc
search_key(struct job *job, struct key_search *search)
{
	const struct conf_route *rule = job->rule;
	enum key_needs needs;
	struct key key;
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
		rc = key_search_form(search, job->rq, engine_read_body);
		break;
	case KEY_NEEDS_JSON:
		rc = engine_read_json(job);
		if (rc == RC_OK)
			rc = key_search_json(search, job->json);
		break;
	}
	if (rc != RC_OK)
		return rc;
	job->verdict = key_search_find(search, rule, &key, &job->source);
	if (job->verdict == KEY_OK && (job->key = strdup(key.text)) == NULL)
		return RC_NOMEM;
	return RC_OK;
}

enum rc
engine_find_key(struct job *job)
{
	struct key_search found;

	if (job->searched)
		return job->search_rc;
	job->searched = true;
	job->search_rc = search_key(job, &found);
	key_search_free(&found);
	return job->search_rc;
}

void
engine_note_key(struct job *job)
{
	if (job->rq->log != NULL && engine_find_key(job) == RC_OK &&
	    job->verdict == KEY_OK)
		log_request_key(job->rq->log, job->key);
}

void
engine_make_reference(struct job *job)
{
	const struct store_identity identity = {
		.scope = job->scope.data, .path = job->rq->path, .key = job->key
	};

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
	job->reservation.identity.key = job->attempt.key = job->key;
	return true;
}
