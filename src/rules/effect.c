/*
 * See effect.h.
 *
 * Invariants, checked by effect_is_sound():
 *
 *  1. An effect has a number, and a state that is not EFFECT_NONE.
 *  2. Only a pending one has the turn: a time, or an owner, and not both.
 *  3. An owner has begun a try.
 *  4. Only a delivered one has a reference.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "effect.h"

/* The longest pause (ms) between two tries. */
#define BACKOFF_MAX INT64_C(3600000)

static const char *const names[] = { EFFECT_STATES(WORDS_WORD) };

const char *
effect_state_name(enum effect_state state)
{
	assert((unsigned)state < EFFECT_NSTATES);
	return names[state];
}

bool
effect_state_parse(const char *name, enum effect_state *state)
{
	const unsigned i = words_find(names, EFFECT_NSTATES, name);

	if (i == EFFECT_NONE || i >= EFFECT_NSTATES)
		return false;
	*state = (enum effect_state)i;
	return true;
}

void
effect_free(struct effect *e)
{
	free(e->topic);
	free(e->scope);
	free(e->path);
	free(e->key);
	free(e->last_error);
	buf_free(&e->reference);
	memset(e, 0, sizeof(*e));
}

bool
effect_needs_payload(const struct effect *e)
{
	return e->state == EFFECT_PENDING || e->state == EFFECT_DEAD_LETTER;
}

bool
effect_is_sound(const struct effect *e)
{
	const bool tried = e->owner != 0;

	return e->id > 0 && e->state != EFFECT_NONE && /* 1 */
	    (e->state == EFFECT_PENDING || (!tried && !e->has_turn)) &&
	    !(tried && e->has_turn) &&                               /* 2 */
	    (!tried || e->attempts > 0) &&                           /* 3 */
	    (e->state == EFFECT_DELIVERED || e->reference.len == 0); /* 4 */
}

/* --- its changes: the only place that decides what an effect becomes ----- */

static void
set_turn(struct effect *e, int64_t next_at)
{
	e->has_turn = true;
	e->next_at = next_at;
}

static void
effect_take_turn(struct effect *e)
{
	e->has_turn = false;
	e->next_at = 0;
}

static bool
is_tried(const struct effect *e)
{
	return e != NULL && e->owner != 0;
}

/* Gives the turn that e has, or had until now, to the first pending effect,
 * which may be e. */
static void
pass_turn(struct effect *e, struct effect *first, struct step_time at)
{
	if (first == NULL || (e->state == EFFECT_PENDING && e->id < first->id))
		return;
	effect_take_turn(e);
	if (!is_tried(first))
		set_turn(first, at.now);
}

static enum rc
set_try_error(struct effect *e, const char *error)
{
	char *copy = NULL;

	if (*error != '\0' && (copy = strdup(error)) == NULL)
		return RC_NOMEM;
	free(e->last_error);
	e->last_error = copy;
	return RC_OK;
}

/* --- a try --------------------------------------------------------------- */

enum rc
effect_step_begin(
    struct effect *e, const struct effect_try *try, struct step_time at)
{
	if (e->state != EFFECT_PENDING || e->attempts != try->attempts ||
	    !e->has_turn || e->next_at > at.now)
		return RC_LOST;
	effect_take_turn(e);
	e->owner = try->owner;
	e->attempts++;
	e->updated_at = at.wall;
	return RC_OK;
}

static bool
may_end_try(
    const struct effect *e, const struct effect_try *try, enum effect_state to)
{
	return e->state == EFFECT_PENDING && e->attempts == try->attempts &&
	    (e->owner == 0 ? to == EFFECT_DELIVERED : e->owner == try->owner);
}

enum rc
effect_step_end(struct effect *e, struct effect *first,
    const struct effect_try *try, const struct effect_end *end,
    struct step_time at)
{
	const bool delivered = end->state == EFFECT_DELIVERED;
	const bool had_turn = is_tried(e) || e->has_turn;
	enum rc rc = RC_OK;

	assert(end->state != EFFECT_NONE);
	if (!may_end_try(e, try, end->state))
		return RC_LOST;
	effect_take_turn(e);
	e->state = end->state;
	e->owner = 0;
	e->updated_at = at.wall;
	if (end->state == EFFECT_PENDING)
		set_turn(e, at.now + end->after);
	if (had_turn)
		pass_turn(e, first, at);
	if (delivered) {
		buf_free(&e->reference);
		buf_init(&e->reference, end->reference_len);
		rc = buf_add(&e->reference, end->reference, end->reference_len);
	}
	return rc == RC_OK ? set_try_error(e, delivered ? "" : end->last_error)
			   : rc;
}

enum rc
effect_step_free(struct effect *e, struct effect *first, struct step_time at)
{
	static const struct effect_end lost = {
		.state = EFFECT_PENDING,
		.last_error = "oncewrap was lost while it was tried",
	};
	const struct effect_try try = { e->attempts, e->owner };

	return effect_step_end(e, first, &try, &lost, at);
}

/* --- how a try went ------------------------------------------------------ */

/* Whether the program ended because this process stops: that is not the
 * effect's fault. */
static bool
is_drained(const struct effect_run *run)
{
	return run->facts != NULL &&
	    (run->facts->end == RUN_DRAINED ||
		(run->facts->end == RUN_NOT_STARTED && run->stopping));
}

/* Why the try did not deliver the effect. */
static void
tell_why(char text[LIMIT_LAST_ERROR], const struct effect_run *run)
{
	static const char *const whys[] = {
		[RUN_TIMEOUT] = "the program took too long",
		[RUN_CUT] =
		    "the program printed too much", /* none is FastCGI */
		[RUN_OUTPUT_LIMIT] = "the program printed too much",
		[RUN_DRAINED] = "oncewrap was stopped",
		[RUN_CAPTURE_FAILED] = "what the program printed was lost",
		[RUN_NOT_STARTED] = "the program could not be started",
	};
	const struct run_facts *facts = run->facts;

	if (facts->end == RUN_EXITED)
		snprintf(text, LIMIT_LAST_ERROR, "the program exited with %d",
		    facts->exit_status);
	else if (facts->end == RUN_SIGNALED)
		snprintf(text, LIMIT_LAST_ERROR,
		    "the program was killed by signal %d", facts->signal);
	else
		snprintf(text, LIMIT_LAST_ERROR, "%s",
		    whys[is_drained(run) ? RUN_DRAINED : facts->end]);
}

void
effect_judge(struct effect_end *end, const struct conf_effect *conf,
    const struct effect_run *run)
{
	const struct run_facts *facts = run->facts;

	end->after = 0;
	if (facts != NULL && facts->end == RUN_EXITED &&
	    facts->exit_status == 0) {
		end->state = EFFECT_DELIVERED;
		return;
	}
	if (facts != NULL)
		tell_why(end->last_error, run);
	end->state = EFFECT_PENDING;
	if (is_drained(run))
		return;
	if (run->attempts >= (int)conf->attempts)
		end->state = EFFECT_DEAD_LETTER;
	else
		end->after = backoff_pause(
		    conf->backoff, run->attempts, BACKOFF_MAX, run->random);
}

/* --- for operators ------------------------------------------------------- */

enum rc
effect_step_retry(struct effect *e, struct effect *first, struct effect *holder,
    struct step_time at)
{
	if (e->state == EFFECT_DELIVERED || is_tried(e))
		return RC_LOST;
	if (e->state == EFFECT_DEAD_LETTER)
		e->attempts = 0;
	e->state = EFFECT_PENDING;
	e->updated_at = at.wall;
	effect_take_turn(e);
	if (is_tried(first) || is_tried(holder))
		return RC_OK;
	if (holder != NULL)
		effect_take_turn(holder);
	if (first != NULL)
		effect_take_turn(first);
	set_turn(first != NULL && first->id < e->id ? first : e, at.now);
	return RC_OK;
}

enum rc
effect_step_drop(struct effect *e, struct effect *first, struct step_time at)
{
	if (is_tried(e))
		return RC_LOST;
	e->state = EFFECT_NONE;
	if (e->has_turn)
		pass_turn(e, first, at);
	return RC_OK;
}
