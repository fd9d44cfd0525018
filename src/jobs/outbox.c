/*
 * A try is counted, and the count durable, before its program runs; its result
 * is recorded after.  If the process dies in between, the effect is tried
 * again, with the same effect key: delivery is at least once.  It is in order
 * for each key, because the next effect of a key is due only when this one is
 * delivered or given up.
 *
 * A program that hangs runs until its timeout.  So that it does not hold up
 * other topics, no topic gets all of OUTBOX_PROGRAMS if the configuration has
 * others.  The topics alternate, so that a topic with many effects does not
 * starve the rest.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "fault.h"
#include "handler.h"
#include "run_wait.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "scope.h"
#include "uuid.h"
#include "outbox.h"

/* Rest (ms) after a look that found nothing: under load keys are settled all
 * the time, and most of them have no effects. */
#define LOOK_REST 5

/* Pause (s) before the end of a try that could not be recorded is recorded
 * again. */
#define RECORD_PAUSE 1

/* A program's slot.  Looks fill it in; the thread that has run the program
 * gives it back, and the next look that takes it frees the effect. */
struct slot {
	struct effect effect; /* the item */
	atomic_bool taken;
};

struct outbox {
	struct store *store;
	const atomic_bool *stop;
	/* used by looks */
	size_t first; /* the topic to begin with */
	struct slot slot[OUTBOX_PROGRAMS];
};

/* A try and its result. */
struct delivery {
	const struct conf_effect *conf;
	const struct effect *effect;
	struct run_facts facts;
	struct effect_end end;
	char instance[UUID_URN_LEN + 1];
	struct log_request log;
	char reference[LIMIT_REFERENCE + 1];
};

struct outbox *
outbox_new(struct store *store, const atomic_bool *stop)
{
	struct outbox *box = calloc(1, sizeof(*box));

	if (box == NULL)
		return NULL;
	box->store = store;
	box->stop = stop;
	return box;
}

void
outbox_free(struct outbox *box)
{
	for (int i = 0; box != NULL && i < OUTBOX_PROGRAMS; i++)
		effect_free(&box->slot[i].effect);
	free(box);
}

/* --- topics ------------------------------------------------------------- */

/* The names of the effects in conf, without those that are in but; but may be
 * NULL.  How many. */
static size_t
names_of(const struct conf *conf, const struct conf *but,
    char *names[LIMIT_CONF_EFFECTS])
{
	size_t n = 0;

	for (size_t i = 0; i < conf->neffects; i++)
		if (but == NULL ||
		    conf_effect_find(but, conf->effects[i].name) == NULL)
			names[n++] = (char *)(uintptr_t)conf->effects[i].name;
	return n;
}

enum rc
outbox_topics(
    struct store *store, const struct conf *old, const struct conf *new)
{
	char *add[LIMIT_CONF_EFFECTS], *drop[LIMIT_CONF_EFFECTS];
	const size_t nadd = names_of(new, NULL, add);
	size_t ndrop;

	ndrop = old != NULL ? names_of(old, new, drop) : 0;
	return old == NULL || nadd + ndrop > 0
	    ? store_topics(store, add, nadd, old != NULL ? drop : NULL, ndrop)
	    : RC_OK;
}

/* --- taking ------------------------------------------------------------- */

static unsigned
count_running(const struct outbox *box, const char *topic)
{
	const struct slot *p;
	unsigned n = 0;

	for (p = box->slot; p < box->slot + OUTBOX_PROGRAMS; p++)
		n += atomic_load(&p->taken) &&
		    strcmp(p->effect.topic, topic) == 0;
	return n;
}

/* Finds the first due effect, beginning with the topic after the last one.
 * RC_NOTFOUND: none is due, and *wake is at most the time of the next one. */
static enum rc
outbox_look(struct outbox *box, const struct conf *conf, struct effect *effect,
    int64_t *wake)
{
	const unsigned most =
	    conf->neffects > 1 ? OUTBOX_PROGRAMS - 1 : OUTBOX_PROGRAMS;
	const int64_t now = store_now(box->store);
	const char *topic;
	int64_t at;
	size_t i;
	enum rc rc;

	for (i = 0; i < conf->neffects; i++) {
		topic = conf->effects[(box->first + i) % conf->neffects].name;
		if (count_running(box, topic) >= most)
			continue;
		rc = store_effect_next(box->store, topic, effect, &at);
		if (rc == RC_OK && at <= now) {
			box->first = (box->first + i + 1) % conf->neffects;
			return RC_OK;
		}
		if (rc == RC_OK)
			*wake = work_wake(box->store, at, *wake);
		effect_free(effect);
		if (rc != RC_OK && rc != RC_NOTFOUND)
			return rc;
	}
	return RC_NOTFOUND;
}

static struct slot *
free_slot(struct outbox *box)
{
	struct slot *p = box->slot;

	while (p < box->slot + OUTBOX_PROGRAMS && atomic_load(&p->taken))
		p++;
	assert(p < box->slot + OUTBOX_PROGRAMS);
	effect_free(&p->effect);
	return p;
}

static enum rc
outbox_next(void *self, const struct conf *conf, void **item, int64_t *wake)
{
	struct outbox *box = self;
	struct slot *p = free_slot(box);
	enum rc rc;

	rc = outbox_look(box, conf, &p->effect, wake);
	if (rc == RC_OK)
		rc = conf_is_retired(conf)
		    ? RC_LOST
		    : store_effect_begin(box->store, &p->effect);
	if (rc != RC_OK)
		return rc;
	FAULT(EFFECT_BEGUN);
	atomic_store(&p->taken, true);
	*item = &p->effect;
	return RC_OK;
}

/* --- trying ------------------------------------------------------------- */

/* Reads all that the program prints, and keeps up to the length of a reference.
 * A newline at its end is dropped: the shell adds it. */
static void
read_reference(struct run *run, struct delivery *try)
{
	char bytes[LIMIT_REFERENCE];
	size_t n, room, len = 0;

	while ((n = run_wait_read(run, bytes, sizeof(bytes))) > 0) {
		room = sizeof(try->reference) - len;
		if (n > room)
			n = room;
		memcpy(try->reference + len, bytes, n);
		len += n;
	}
	if (len > 0 && try->reference[len - 1] == '\n')
		len--;
	if (len > LIMIT_REFERENCE)
		len = LIMIT_REFERENCE;
	try->end.reference = try->reference;
	try->end.reference_len = len;
}

/* Runs the program to its end; false: the payload cannot be read. */
static bool
run_it(struct outbox *box, struct delivery *try)
{
	const struct effect *e = try->effect;
	const struct cgienv_effect env = { e->effect_key, e->topic, e->key,
		e->scope };
	struct spool *payload = NULL;
	struct run *run;
	enum rc rc;

	rc = store_effect_payload(box->store, e, &payload);
	if (rc != RC_OK) {
		snprintf(try->end.last_error, sizeof(try->end.last_error),
		    "its payload cannot be read: %s", rc_text(rc));
		return false;
	}
	run = run_wait_begin(handler_start_effect(&try->conf->program, &env,
				 payload, &try->log, &try->facts),
	    &try->facts);
	if (run != NULL) {
		read_reference(run, try);
		run_wait_finish(run, &try->facts);
	}
	spool_free(payload);
	return true;
}

static void
outbox_try(struct outbox *box, struct delivery *try)
{
	const bool ran = run_it(box, try);
	const struct effect_run run = {
		.facts = ran ? &try->facts : NULL,
		.stopping = run_is_draining(),
		.attempts = try->effect->attempts,
		.random = uuid_bits(),
	};

	effect_judge(&try->end, try->conf, &run);
	if (try->end.state != EFFECT_DELIVERED)
		try->end.reference_len = 0;
}

/*
 * Until the end of the try is recorded, this process owns the effect.  So it
 * repeats the write as long as it lives.  If it dies first, the next sweep
 * frees the effect, and it is delivered once more.
 */
static void
record_try(struct outbox *box, struct delivery *try)
{
	const struct timespec pause = { .tv_sec = RECORD_PAUSE };
	enum rc rc;

	for (;;) {
		rc = store_effect_end(box->store, try->effect, &try->end);
		if (rc == RC_OK)
			return;
		log_event(LOG_ERROR, "effect-not-recorded", &try->log,
		    LOG_S("effect_key", try->effect->effect_key),
		    LOG_S("why", rc_text(rc)));
		if (rc == RC_LOST || rc == RC_CLOSED || atomic_load(box->stop))
			return;
		nanosleep(&pause, NULL);
	}
}

static void
log_try(const struct delivery *try, const struct effect *e)
{
	static const struct {
		enum log_level level;
		enum metrics_id metric;
	} kinds[EFFECT_NSTATES] = {
		[EFFECT_PENDING] = { LOG_WARN, METRICS_OUTBOX_RETRIED },
		[EFFECT_DELIVERED] = { LOG_INFO, METRICS_OUTBOX_DELIVERED },
		[EFFECT_DEAD_LETTER] = { LOG_ERROR, METRICS_OUTBOX_DEAD },
	};

	metrics_count(kinds[try->end.state].metric);
	log_event(kinds[try->end.state].level, "effect", &try->log,
	    LOG_S("effect_key", e->effect_key), LOG_S("topic", e->topic),
	    LOG_I("try", e->attempts),
	    LOG_S("state", effect_state_name(try->end.state)),
	    LOG_S("why", try->end.last_error),
	    LOG_I("exit", try->facts.exit_status),
	    LOG_I("signal", try->facts.signal),
	    LOG_I("ms", try->facts.milliseconds));
}

static void
outbox_run(void *self, const struct conf *conf, void *item)
{
	struct outbox *box = self;
	struct slot *p = item;
	struct delivery try;

	memset(&try, 0, sizeof(try));
	try.effect = &p->effect;
	try.conf = conf_effect_find(conf, p->effect.topic);
	assert(try.conf != NULL);
	uuid_urn(try.instance);
	try.log.instance = try.instance;
	try.log.path = p->effect.path;
	try.log.key = p->effect.key;
	scope_tag(p->effect.scope, try.log.scope);
	outbox_try(box, &try);
	FAULT(EFFECT_RAN);
	record_try(box, &try);
	FAULT(EFFECT_RECORDED);
	log_try(&try, &p->effect);
	atomic_store(&p->taken, false);
}

static struct work_terms
outbox_terms(const struct conf *conf)
{
	const bool any = conf->neffects > 0;

	return (struct work_terms){ any ? OUTBOX_PROGRAMS : 0, any };
}

const struct work_kind outbox_kind = {
	.name = "outbox",
	.rest = LOOK_REST,
	.terms = outbox_terms,
	.next = outbox_next,
	.run = outbox_run,
};
