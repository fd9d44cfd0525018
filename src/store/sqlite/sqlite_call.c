/*
 * Calls of a loop: see store_call.h and committer_submit().
 */
#include "config.h"

#include <stddef.h>

#include "store_impl.h"

enum rc
sqlite_call_open(struct store *store)
{
	return store->glancer == NULL ? store_reader_glancer(store) : RC_OK;
}

static void
call_told(struct loop_message *m)
{
	struct write *w = (struct write *)(void *)((char *)m -
	    offsetof(struct write, message));
	struct store_call *call = w->caller;

	loop_clear(w->loop, &call->late);
	call->rc = call->result(call, w->rc);
	store_call_ended(call);
}

static void
call_late(struct loop_timer *t)
{
	struct store_call *call = (struct store_call *)(void *)((char *)t -
	    offsetof(struct store_call, late));
	struct committer *c = call->store->committer;
	int64_t until;
	enum rc rc;

	if (committer_late(c, call->write, &until, &rc)) {
		loop_set(call->store->base.loop, t, until);
		return;
	}
	call->rc = call->result(call, rc);
	store_call_ended(call);
}

bool
sqlite_call_submit(
    struct store *store, struct store_call *call, struct write *w)
{
	int64_t until;
	enum rc rc;

	w->message.come = call_told;
	w->caller = call;
	call->write = w;
	call->late = (struct loop_timer){ .due = call_late };
	rc = committer_submit(store->committer, w, store->base.loop, &until);
	if (rc == RC_OK) {
		loop_set(store->base.loop, &call->late, until);
		return false;
	}
	call->rc = call->result(call, rc);
	return true;
}
