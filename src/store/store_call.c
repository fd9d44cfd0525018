/*
 * Calls of the store that do not wait: see store_call.h.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "store_admit.h"
#include "store_ops.h"
#include "store_outcome.h"
#include "store_call.h"

static bool
is_sqlite(struct store *s)
{
	return store_base(s)->file != NULL;
}

/* --- the loop ------------------------------------------------------------- */

enum rc
store_call_open(struct store *s, struct loop *l, unsigned helpers)
{
	struct store_base *b = store_base(s);
	enum rc rc = helpers_open(&b->helpers, l, "store", helpers);

	if (rc == RC_OK && is_sqlite(s))
		rc = sqlite_call_open(s);
	if (rc != RC_OK) {
		helpers_close(b->helpers);
		b->helpers = NULL;
		return rc;
	}
	b->loop = l;
	return RC_OK;
}

void
store_call_close(struct store *s)
{
	struct store_base *b = store_base(s);

	helpers_close(b->helpers);
	b->helpers = NULL;
}

/* --- any call ------------------------------------------------------------- */

/* Sets its results; returns true. */
static bool
call_end(struct store_call *call)
{
	if (call->end != NULL)
		call->end(call);
	return true;
}

void
store_call_ended(struct store_call *call)
{
	(void)call_end(call);
	call->done(call);
}

static void
call_work(struct helpers_task *t)
{
	struct store_call *call = OWNER(t, struct store_call, task);

	call->rc = call->work(call);
}

static void
call_worked(struct helpers_task *t)
{
	store_call_ended(OWNER(t, struct store_call, task));
}

/* Lets a helper do it; returns false. */
static bool
call_ask(struct store_call *call, enum rc (*work)(struct store_call *call))
{
	call->work = work;
	call->task.work = call_work;
	call->task.done = call_worked;
	call->task.first = call->first;
	helpers_ask(store_base(call->store)->helpers, &call->task);
	return false;
}

static void
call_begin(struct store_call *call, struct store *s,
    void (*end)(struct store_call *call))
{
	call->store = s;
	call->end = end;
	call->rc = RC_OK;
}

static enum rc
work_work(struct store_call *call)
{
	return call->of.work.run(call->of.work.arg);
}

void
store_call_work(struct store *s, struct store_call *call,
    enum rc (*run)(void *arg), void *arg)
{
	call_begin(call, s, NULL);
	call->of.work.run = run;
	call->of.work.arg = arg;
	(void)call_ask(call, work_work);
}

/* --- lookup --------------------------------------------------------------- */

static enum rc
lookup_work(struct store_call *call)
{
	return store_lookup(call->store, call->of.lookup.identity,
	    call->of.lookup.key, call->of.lookup.small);
}

bool
store_call_lookup(struct store *s, struct store_call *call,
    const struct store_identity *identity, struct record *key,
    struct store_inline_answer *small)
{
	call_begin(call, s, NULL);
	if (is_sqlite(s) && sqlite_glance(s, identity, key, small, &call->rc))
		return true;
	call->of.lookup.identity = identity;
	call->of.lookup.key = key;
	call->of.lookup.small = small;
	return call_ask(call, lookup_work);
}

/* --- admit ---------------------------------------------------------------- */

static void
admit_call_end(struct store_call *call)
{
	struct store_admission *a = call->of.admission;

	call->rc = store_admission_end(a, call->rc);
	free(a);
}

static enum rc
admit_work(struct store_call *call)
{
	return store_admit_do(call->store, &call->of.admission->admit);
}

bool
store_call_admit(
    struct store *s, struct store_call *call, const struct store_asked *asked)
{
	struct store_admission *a =
	    calloc(1, store_base(s)->ops->admission_size);

	call_begin(call, s, admit_call_end);
	call->of.admission = a;
	memset(asked->found, 0, sizeof(*asked->found));
	if (a == NULL) {
		call->rc = RC_NOMEM;
		return true;
	}
	a->asked = *asked;
	store_admission_begin(a);
	if (is_sqlite(s) &&
	    (!a->admit.keep || asked->what->body_len <= STORE_PIECE))
		return sqlite_call_admit(s, call) && call_end(call);
	return call_ask(call, admit_work);
}

/* --- finish --------------------------------------------------------------- */

static struct outcome_change *
change_of(struct store_outcome *outcome)
{
	return (struct outcome_change *)(void *)outcome;
}

static void
finish_end(struct store_call *call)
{
	if (call->rc == RC_OK)
		*call->of.finish.done =
		    change_of(*call->of.finish.outcome)->done;
}

static enum rc
finish_work(struct store_call *call)
{
	struct store_outcome **outcome = call->of.finish.outcome;

	return store_outcome_do(call->store, change_of(*outcome), outcome);
}

bool
store_call_finish(struct store *s, struct store_call *call,
    const struct store_lease *lease, int64_t retention,
    struct store_outcome **outcome, struct store_finished *done)
{
	struct outcome_change *o;

	call_begin(call, s, finish_end);
	memset(done, 0, sizeof(*done));
	call->of.finish.outcome = outcome;
	call->of.finish.done = done;
	o = store_finish_begin(*outcome, lease, retention);
	if (is_sqlite(s) &&
	    (!o->outcome.keep || o->outcome.response.body_len <= STORE_PIECE))
		return sqlite_call_outcome(s, call, o) && call_end(call);
	return call_ask(call, finish_work);
}
