/*
 * Keys and refusals are gathered for a moment before the first run, so that a
 * crash that leaves a hundred keys unknown is one message.
 *
 * Memory is bounded: lines of keys by LINES_MAX, refusals by their number, and
 * what is told again by TEXT_MAX.
 * What has no room is counted, and the last line of a run has the count.
 */
#include "config.h"

#include <string.h>

#include "clock.h"
#include "handler.h"
#include "json.h"
#include "lock.h"
#include "run.h"
#include "run_wait.h"
#include "attention.h"

/* How long (ms) is gathered before a run. */
#define GATHER 1000

#define LINES_MAX    (256 * 1024)
#define TEXT_MAX     (3 * LINES_MAX)
#define REFUSALS_MAX 64
#define REFUSAL_MAX  4096

/* How long (ms) a program that ignores SIGTERM may take at the daemon's end. */
#define LAST_PATIENCE 100

struct refusal {
	int64_t at;      /* wall clock */
	int64_t number;  /* requests */
	struct buf what; /* the members of its line that say so */
};

/* Guarded by lock_notes. */
static struct store *store; /* to be woken; or NULL */
static bool on;
/* What a run has failed to tell, and lines of keys. */
static struct buf lines = { .max = TEXT_MAX, .data = (char[]){ "" } };
static struct refusal refusals[REFUSALS_MAX];
static size_t nrefusals;
static int64_t left_out; /* keys and refusals without room */
static int64_t due;      /* mono: of the next run; 0: nothing is to be told */
static int64_t told_at;  /* mono: the begin of the last run; 0: none yet */

/* The text of a run: there is one at a time. */
static struct buf telling = { .max = TEXT_MAX, .data = (char[]){ "" } };

/* --- gathering ---------------------------------------------------------- */

static void
forget_refusals(void)
{
	while (nrefusals > 0)
		buf_free(&refusals[--nrefusals].what);
	left_out = 0;
	due = 0;
}

void
attention_configure(const struct conf *conf, struct store *wake)
{
	lock_take(&lock_notes);
	on = conf->on_attention.argv.n > 0;
	if (wake != NULL)
		store = wake;
	if (!on) {
		forget_refusals();
		buf_free(&lines);
	}
	lock_give(&lock_notes);
}

/* There is something to tell; under the lock.  Returns the store to be woken
 * without the lock, or NULL. */
static struct store *
attention_gathered(void)
{
	if (due != 0)
		return NULL;
	due = clock_mono() + GATHER;
	return store;
}

static void
wake_scheduler(struct store *wake)
{
	if (wake != NULL)
		store_wake(wake);
}

/* Begins a line. */
static void
begin_line(struct json_write *line, int64_t wall, const char *event)
{
	json_write_raw(line, "{");
	json_write_time(line, "ts", wall);
	json_write_text(line, "event", event);
}

/* Adds a member, if there is a value. */
static void
add_known(struct json_write *line, const char *name, const char *value)
{
	if (value != NULL && *value != '\0')
		json_write_text(line, name, value);
}

void
attention_key(
    enum record_state state, const struct log_request *key, const char *why)
{
	static const struct log_request none = { .path = NULL };
	struct json_write line = { &lines, RC_OK };
	struct store *wake = NULL;
	size_t before;

	if (state != RECORD_UNKNOWN && state != RECORD_DEAD_LETTER)
		return;
	if (key == NULL)
		key = &none;
	lock_take(&lock_notes);
	if (on) {
		before = lines.len;
		begin_line(&line, clock_wall(), record_state_name(state));
		add_known(&line, "key", key->key);
		add_known(&line, "path", key->path);
		add_known(&line, "scope", key->scope);
		add_known(&line, "instance", key->instance);
		add_known(&line, "why", why);
		json_write_raw(&line, "}\n");
		if (line.rc != RC_OK || lines.len > LINES_MAX) {
			buf_truncate(&lines, before);
			left_out++;
		}
		wake = attention_gathered();
	}
	lock_give(&lock_notes);
	wake_scheduler(wake);
}

/* Finds it among those gathered, or adds it; NULL: there is no room. */
static struct refusal *
find_refusal(const struct buf *what)
{
	struct refusal *r = refusals;

	for (; r < refusals + nrefusals; r++)
		if (strcmp(r->what.data, what->data) == 0)
			return r;
	if (nrefusals == REFUSALS_MAX)
		return NULL;
	*r = (struct refusal){ .at = clock_wall() };
	buf_init(&r->what, REFUSAL_MAX);
	if (buf_add(&r->what, what->data, what->len) != RC_OK)
		return NULL;
	nrefusals++;
	return r;
}

void
attention_refused(const struct attention_refusal *refusal)
{
	struct refusal *r;
	struct store *wake = NULL;
	struct buf what;
	struct json_write line = { &what, RC_OK };

	buf_init(&what, REFUSAL_MAX);
	json_write_text(&line, "code", refusal->code);
	add_known(&line, "limit", refusal->limit);
	add_known(&line, "route", refusal->route);
	add_known(&line, "caller", refusal->caller);
	add_known(&line, "why", refusal->why);
	lock_take(&lock_notes);
	if (on) {
		r = line.rc == RC_OK ? find_refusal(&what) : NULL;
		if (r != NULL)
			r->number++;
		else
			left_out++;
		wake = attention_gathered();
	}
	lock_give(&lock_notes);
	wake_scheduler(wake);
	buf_free(&what);
}

/* --- telling ------------------------------------------------------------ */

/* Adds the lines of refusals to those of keys; under the lock. */
static enum rc
add_refusals(void)
{
	struct json_write line = { &lines, RC_OK };

	for (const struct refusal *r = refusals; r < refusals + nrefusals;
	     r++) {
		begin_line(&line, r->at, "refused");
		json_write_raw(&line, ",");
		json_write_raw(&line, r->what.data);
		json_write_number(&line, "requests", r->number);
		json_write_raw(&line, "}\n");
	}
	if (left_out > 0) {
		begin_line(&line, clock_wall(), "more");
		json_write_number(&line, "number", left_out);
		json_write_raw(&line, "}\n");
	}
	return line.rc;
}

/* Takes what was gathered, as far as there is room and memory; the rest stays
 * for the next run.  False: nothing was taken. */
static bool
attention_take(void)
{
	size_t before;

	lock_take(&lock_notes);
	before = lines.len;
	told_at = clock_mono();
	if (add_refusals() == RC_OK)
		forget_refusals();
	else {
		buf_truncate(&lines, before);
		due = told_at;
	}
	telling = lines;
	buf_init(&lines, TEXT_MAX);
	lock_give(&lock_notes);
	return telling.len > 0;
}

static int64_t
count_lines(const struct buf *text)
{
	int64_t n = 0;

	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == '\n';
	return n;
}

/* The program failed: what it was to tell comes before what came since. */
static void
put_back(void)
{
	lock_take(&lock_notes);
	if (on) {
		if (buf_add(&telling, lines.data, lines.len) != RC_OK)
			left_out += count_lines(&lines);
		buf_free(&lines);
		lines = telling;
		buf_init(&telling, TEXT_MAX);
		due = told_at;
	}
	lock_give(&lock_notes);
}

/* Runs the program with what was taken. */
static void
tell_program(const struct conf_program *program)
{
	struct run_facts facts;
	struct run *run = run_wait_begin(
	    handler_start_notice(program, telling.data, telling.len, &facts),
	    &facts);
	bool told;

	if (run != NULL)
		run_wait_finish(run, &facts);
	told = facts.end == RUN_EXITED && facts.exit_status == 0;
	log_event(told ? LOG_INFO : LOG_ERROR, "attention", NULL,
	    LOG_I("lines", count_lines(&telling)),
	    LOG_S("end", run_end_name(facts.end)),
	    LOG_I("exit", facts.exit_status), LOG_I("signal", facts.signal),
	    LOG_I("ms", facts.milliseconds));
	if (!told)
		put_back();
	buf_free(&telling);
}

void
attention_end(const struct conf *conf, int64_t timeout)
{
	struct conf_program program = conf->on_attention;

	if (program.argv.n == 0)
		return;
	if (attention_take()) {
		run_resume();
		program.timeout = timeout;
		program.kill_after = LAST_PATIENCE;
		tell_program(&program);
	}
	lock_take(&lock_notes);
	on = false;
	store = NULL;
	told_at = 0;
	forget_refusals();
	buf_free(&lines);
	lock_give(&lock_notes);
}

/* --- the kind of work --------------------------------------------------- */

/* News end the wait for it, and no other process makes any. */
static struct work_terms
attention_terms(const struct conf *conf)
{
	return (struct work_terms){ conf->on_attention.argv.n > 0, false };
}

/* When the program is to be run next; INT64_MAX: there is nothing to tell. */
static int64_t
due_at(const struct conf *conf)
{
	int64_t at;

	lock_take(&lock_notes);
	at = due != 0 ? due : INT64_MAX;
	if (due != 0 && told_at != 0 && at < told_at + conf->attention_interval)
		at = told_at + conf->attention_interval;
	lock_give(&lock_notes);
	return at;
}

static enum rc
attention_next(void *self, const struct conf *conf, void **item, int64_t *wake)
{
	const int64_t at = due_at(conf);

	if (at > clock_mono()) {
		if (at < *wake)
			*wake = at;
		return RC_NOTFOUND;
	}
	*item = self;
	return attention_take() ? RC_OK : RC_NOMEM;
}

static void
attention_run(void *self, const struct conf *conf, void *item)
{
	(void)self;
	(void)item;
	tell_program(&conf->on_attention);
}

const struct work_kind attention_kind = {
	.name = "attention",
	.terms = attention_terms,
	.next = attention_next,
	.run = attention_run,
};
