/*
 * Keys and refusals are gathered for a moment before the first run, so that a
 * crash that leaves a hundred keys unknown is one message.
 *
 * Memory is bounded: lines of keys by LINES_MAX, and refusals by their number.
 * What has no room is counted, and the last line of a run has the count.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "date.h"
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
#define REFUSED_TEXT 128

/* How long (ms) a program that ignores SIGTERM may take at the daemon's end. */
#define LAST_PATIENCE 100

struct refusal {
	int64_t at;     /* wall clock */
	int64_t number; /* requests */
	const char *code;
	char limit[32], route[REFUSED_TEXT], caller[REFUSED_TEXT];
	char why[REFUSED_TEXT];
};

/* Guarded by lock_notes. */
static struct store *store; /* to be woken; or NULL */
static bool on;
/* What was gathered, and the text of a run that failed. */
static struct buf lines = { .max = LINES_MAX, .data = (char[]){ "" } };
static struct buf untold = { .max = TEXT_MAX, .data = (char[]){ "" } };
static struct refusal refusals[REFUSALS_MAX];
static size_t nrefusals;
static int64_t left_out; /* keys and refusals without room */
static int64_t since;    /* mono: of the first of them; 0: there is none */
static int64_t told_at;  /* mono: the begin of the last run; 0: none yet */

/* --- gathering ---------------------------------------------------------- */

static void
forget(void)
{
	buf_free(&lines);
	nrefusals = 0;
	left_out = 0;
	since = 0;
}

void
attention_configure(const struct conf *conf, struct store *wake)
{
	lock_take(&lock_notes);
	on = conf->on_attention.argv.n > 0;
	if (wake != NULL)
		store = wake;
	if (!on) {
		forget();
		buf_free(&untold);
	}
	lock_give(&lock_notes);
}

/* There is something to tell; under the lock.  Returns the store to be woken
 * without the lock, or NULL. */
static struct store *
attention_gathered(void)
{
	struct store *wake = since == 0 ? store : NULL;

	if (since == 0)
		since = clock_mono();
	return wake;
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
	char time[DATE_RFC3339_LEN + 1];

	date_put_rfc3339(wall, time);
	json_write_raw(line, "{");
	json_write_text(line, "ts", time);
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
		if (line.rc != RC_OK) {
			buf_truncate(&lines, before);
			left_out++;
		}
		wake = attention_gathered();
	}
	lock_give(&lock_notes);
	wake_scheduler(wake);
}

static void
attention_copy(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from != NULL ? from : "");
}

/* Finds it among those gathered, or adds it; NULL: there is no room. */
static struct refusal *
find_refusal(const struct refusal *what)
{
	struct refusal *r = refusals;

	for (; r < refusals + nrefusals; r++)
		if (r->code == what->code &&
		    strcmp(r->limit, what->limit) == 0 &&
		    strcmp(r->route, what->route) == 0 &&
		    strcmp(r->caller, what->caller) == 0)
			return r;
	if (nrefusals == REFUSALS_MAX)
		return NULL;
	nrefusals++;
	*r = *what;
	r->at = clock_wall();
	return r;
}

void
attention_refused(const struct attention_refusal *refusal)
{
	struct refusal what = { .code = refusal->code }, *r;
	struct store *wake = NULL;

	attention_copy(what.limit, sizeof(what.limit), refusal->limit);
	attention_copy(what.route, sizeof(what.route), refusal->route);
	attention_copy(what.caller, sizeof(what.caller), refusal->caller);
	attention_copy(what.why, sizeof(what.why), refusal->why);
	lock_take(&lock_notes);
	if (on) {
		if ((r = find_refusal(&what)) != NULL)
			r->number++;
		else
			left_out++;
		wake = attention_gathered();
	}
	lock_give(&lock_notes);
	wake_scheduler(wake);
}

/* --- telling ------------------------------------------------------------ */

/* Appends all that was gathered; under the lock. */
static enum rc
add_gathered(struct buf *text)
{
	struct json_write line = { text, RC_OK };

	line.rc = buf_add(text, lines.data, lines.len);
	for (const struct refusal *r = refusals; r < refusals + nrefusals;
	     r++) {
		begin_line(&line, r->at, "refused");
		json_write_text(&line, "code", r->code);
		add_known(&line, "limit", r->limit);
		add_known(&line, "route", r->route);
		add_known(&line, "caller", r->caller);
		add_known(&line, "why", r->why);
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

/* Takes what a program has failed to tell, and what was gathered since as far
 * as there is room.  text is empty; without memory it stays so, or has a part,
 * and the rest stays for the next run. */
static void
attention_take(struct buf *text)
{
	size_t before;

	lock_take(&lock_notes);
	*text = untold;
	buf_init(&untold, TEXT_MAX);
	before = text->len;
	if (before <= LINES_MAX) {
		if (add_gathered(text) == RC_OK)
			forget();
		else
			buf_truncate(text, before);
	}
	told_at = clock_mono();
	lock_give(&lock_notes);
}

/* The program failed; the text is empty then. */
static void
put_back(struct buf *text)
{
	lock_take(&lock_notes);
	if (on) {
		buf_free(&untold);
		untold = *text;
		buf_init(text, TEXT_MAX);
	}
	lock_give(&lock_notes);
}

static int64_t
count_lines(const struct buf *text)
{
	int64_t n = 0;

	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == '\n';
	return n;
}

/* Runs the program with that text, and frees the text. */
static void
tell(const struct conf_program *program, struct buf *text)
{
	struct run_facts facts;
	struct run *run = run_wait_begin(
	    handler_start_notice(program, text->data, text->len, &facts),
	    &facts);
	bool told;

	if (run != NULL)
		run_wait_finish(run, &facts);
	told = facts.end == RUN_EXITED && facts.exit_status == 0;
	log_event(told ? LOG_INFO : LOG_ERROR, "attention", NULL,
	    LOG_I("lines", count_lines(text)),
	    LOG_S("end", run_end_name(facts.end)),
	    LOG_I("exit", facts.exit_status), LOG_I("signal", facts.signal),
	    LOG_I("ms", facts.milliseconds));
	if (!told)
		put_back(text);
	buf_free(text);
}

void
attention_end(const struct conf *conf, int64_t timeout)
{
	struct conf_program program = conf->on_attention;
	struct buf text;

	if (program.argv.n == 0)
		return;
	attention_take(&text);
	if (text.len > 0) {
		run_resume();
		program.timeout = timeout;
		program.kill_after = LAST_PATIENCE;
		tell(&program, &text);
	}
	buf_free(&text);
	lock_take(&lock_notes);
	on = false;
	store = NULL;
	told_at = 0;
	forget();
	buf_free(&untold);
	lock_give(&lock_notes);
}

/* --- the kind of work --------------------------------------------------- */

static unsigned
attention_limit(const struct conf *conf)
{
	return conf->on_attention.argv.n > 0;
}

/* News end the wait for it, and no other process makes any. */
static bool
attention_expected(const struct conf *conf)
{
	(void)conf;
	return false;
}

/* When the program is to be run next; INT64_MAX: there is nothing to tell. */
static int64_t
due_at(const struct conf *conf)
{
	int64_t at = INT64_MAX;

	lock_take(&lock_notes);
	if (untold.len > 0)
		at = told_at;
	else if (since != 0)
		at = since + GATHER;
	if (at != INT64_MAX && told_at != 0 &&
	    at < told_at + conf->attention_interval)
		at = told_at + conf->attention_interval;
	lock_give(&lock_notes);
	return at;
}

static enum rc
attention_next(void *self, const struct conf *conf, void **item, int64_t *wake)
{
	const int64_t at = due_at(conf);
	struct buf *text;

	(void)self;
	if (at > clock_mono()) {
		if (at < *wake)
			*wake = at;
		return RC_NOTFOUND;
	}
	if ((text = malloc(sizeof(*text))) == NULL)
		return RC_NOMEM;
	attention_take(text);
	*item = text;
	if (text->len > 0)
		return RC_OK;
	buf_free(text);
	free(text);
	return RC_NOMEM;
}

static void
attention_run(void *self, const struct conf *conf, void *item)
{
	struct buf *text = item;

	(void)self;
	tell(&conf->on_attention, text);
	free(text);
}

const struct work_kind attention_kind = {
	.name = "attention",
	.limit = attention_limit,
	.expected = attention_expected,
	.next = attention_next,
	.run = attention_run,
};
