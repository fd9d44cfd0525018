/*
 * store on PostgreSQL: what one host makes of another one that is silent.
 *
 * A host is a process here with a folder of its own (STATE_DIRECTORY).  It does
 * what it is told by a byte in a pipe, and is silent while it is stopped.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>

#define PATIENCE 2000

#include "handler_api.h"
#include "store_fixture.h"
#include "postgres.h"
#include "store_outbox.h"

/* Long enough for a process that is not stopped to move, ms. */
#define OWNER_TIMEOUT 1000

struct host {
	pid_t pid;
	int to, from;
	struct store_lease lease;
	struct store_attempt attempt;
	struct effect effect; /* without its texts */
	enum rc rc;
	bool answered;
};

/* Processes of this case: a host holds the servers' input open, so a case that
 * fails must end it, or the servers never end. */
#define CHILDREN_MAX 8
static pid_t children[CHILDREN_MAX];
static int nchildren;

static void
remember_child(pid_t pid)
{
	assert_true(nchildren < CHILDREN_MAX);
	children[nchildren++] = pid;
}

static void
forget_child(pid_t pid)
{
	for (int i = 0; i < nchildren; i++)
		if (children[i] == pid)
			children[i] = children[--nchildren];
}

static void
end_children(void)
{
	while (nchildren > 0)
		kill_and_wait(children[--nchildren]);
}

static struct store *
open_host(const char *name)
{
	struct store_options o = options();
	const char *folder = textf("%s/%s", dir, name);

	(void)mkdir(folder, 0700);
	setenv("STATE_DIRECTORY", folder, 1);
	o.owner_timeout = OWNER_TIMEOUT;
	return open_with(o);
}

/* --- what a host does ----------------------------------------------------- */

static void
host_obey(struct host *h, char command)
{
	struct store_reservation r = reservation("k");
	struct effect_end end;
	struct store_finished done;
	struct store_outcome *o;
	int64_t at;

	switch (command) {
	case 'r': /* reserves, and may be resumed */
		assert_ok(store_attempt_lock(store, &h->attempt));
		r.on_crash = CONF_CRASH_RESUME;
		r.attempt = &h->attempt;
		r.reconcile_delay = 1;
		give_request(&r, NULL, 0);
		assert_int_equal(
		    try_reserve_in(store, &r, &h->lease), DECIDE_RUN);
		h->rc = store_attempt_begin(
		    &h->attempt, h->lease.token, h->lease.id);
		break;
	case 'f': /* finishes */
		o = outcome(RECORD_COMPLETED);
		h->rc = store_finish(store, &h->lease, HOUR, &o, &done);
		h->answered = done.answered;
		store_outcome_free(o);
		break;
	case 'b': /* begins to deliver */
		h->rc = store_effect_next(store, "mail", &h->effect, &at);
		if (h->rc == RC_OK)
			h->rc = store_effect_begin(store, &h->effect);
		break;
	case 'd': /* has delivered */
		memset(&end, 0, sizeof(end));
		end.state = EFFECT_DELIVERED;
		h->rc = store_effect_end(store, &h->effect, &end);
		break;
	default:
		_exit(0);
	}
}

static void
be_host(const char *name, int in, int out)
{
	struct host h;
	char command;

	be_child();
	memset(&h, 0, sizeof(h));
	store = open_host(name);
	while (read(in, &command, 1) == 1) {
		host_obey(&h, command);
		if (write(out, &h, sizeof(h)) != sizeof(h))
			_exit(1);
	}
	_exit(0);
}

/* --- the words ------------------------------------------------------------ */

static struct host
start_host(const char *name)
{
	int in[2], out[2];
	struct host h;

	memset(&h, 0, sizeof(h));
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	h.pid = fork();
	assert_int_not_equal(h.pid, -1);
	if (h.pid == 0)
		be_host(name, in[0], out[1]);
	remember_child(h.pid);
	close(in[0]);
	close(out[1]);
	h.to = in[1];
	h.from = out[0];
	return h;
}

static enum rc
tell(struct host *h, char command)
{
	const int to = h->to, from = h->from;
	const pid_t pid = h->pid;

	assert_int_equal(write(to, &command, 1), 1);
	assert_int_equal(read(from, h, sizeof(*h)), sizeof(*h));
	h->to = to;
	h->from = from;
	h->pid = pid;
	return h->rc;
}

static void
silence(const struct host *h)
{
	kill(h->pid, SIGSTOP);
}

static void
wake(const struct host *h)
{
	kill(h->pid, SIGCONT);
}

static void
end_host(struct host *h)
{
	kill_and_wait(h->pid);
	forget_child(h->pid);
	close(h->to);
	close(h->from);
}

/* Sweeps until something has changed: what the last key became. */
static enum record_state
sweep_until_changed(struct store_change *last)
{
	struct store_change changes[8];
	enum rc rc;
	int n;

	AWAIT((rc = store_recover(store, 8, changes, &n)) != RC_OK || n > 0);
	assert_ok(rc);
	*last = changes[n - 1];
	store_changes_free(changes, n);
	return last->to;
}

static void
becomes_unknown(void)
{
	struct store_change c;

	assert_int_equal(sweep_until_changed(&c), RECORD_UNKNOWN);
	assert_int_equal(c.from, RECORD_IN_PROGRESS);
	assert_int_equal(decision_for("k"), DECIDE_UNKNOWN);
}

#define CASE(name) TEST_WITH(name, setup_dir, teardown_hosts)

static int teardown_hosts(void **);

/* --- keys ----------------------------------------------------------------- */

CASE(of_a_silent_host_an_answer_of_its_handler_stands)
{
	struct host a = start_host("a");
	struct handler_api_write w = {
		.responds = true,
		.status = 201,
		.headers = "A: b\r\n",
		.body = "body",
		.len = 4,
	};
	struct store_change c;
	char why[256];

	assert_ok(tell(&a, 'r'));
	store = open_host("b");
	w.token = token_of(&a.lease);
	assert_ok(handler_says(&w, why));
	silence(&a);
	assert_int_equal(sweep_until_changed(&c), RECORD_COMPLETED);
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
	/* it is confirmed, so the handler can say no more */
	w = (struct handler_api_write){ .token = token_of(&a.lease),
		.point = "p" };
	assert_int_equal(handler_says(&w, why), RC_INVALID);
	assert_string_equal(why, "lease lost");
	wake(&a);
	assert_ok(tell(&a, 'f'));
	assert_true(a.answered);
	end_host(&a);
}

CASE(without_its_row_a_silent_host_is_suspected_too)
{
	struct host a = start_host("a");

	assert_ok(tell(&a, 'r'));
	silence(&a);
	delete_all(OWNERS);
	store = open_host("b");
	becomes_unknown();
	/* the row comes back */
	wake(&a);
	assert_ok(tell(&a, 'f'));
	assert_int_equal(state_of("k"), RECORD_COMPLETED);
	end_host(&a);
}

/* It may be a host with a copy of this one's disk, which lives. */
CASE(of_another_boot_a_process_that_does_not_move_is_suspected)
{
	struct host a = start_host("a");

	assert_ok(tell(&a, 'r'));
	store = open_host("b");
	be_of_my_past(a.pid);
	silence(&a);
	becomes_unknown();
	assert_int_equal(sweep(store), 0);
	assert_int_equal(decision_for("k"), DECIDE_UNKNOWN);
	/* The handler may run until its deadline. */
	assert_true(
	    value_of("k", K_RECONCILE_AFTER) > store_now(store) + 30000);
	wake(&a);
	assert_ok(tell(&a, 'f'));
	assert_int_equal(state_of("k"), RECORD_COMPLETED);
	end_host(&a);
}

/* As in a container that names its boot itself. */
CASE(of_another_boot_a_process_whose_lock_was_seen_is_gone)
{
	struct host a = start_host("b");
	struct store_change c;
	int64_t until;

	assert_ok(tell(&a, 'r'));
	store = open_host("b");
	spoil_owner(O_BOOT, "'another'");
	/* The lock proves that it lives, however silent it is. */
	silence(&a);
	until = clock_mono() + 2 * OWNER_TIMEOUT;
	while (clock_mono() < until)
		assert_int_equal(sweep(store), 0);
	assert_int_equal(decision_for("k"), DECIDE_BUSY);
	end_host(&a);
	assert_int_equal(sweep_until_changed(&c), RECORD_FAILED_RETRYABLE);
}

CASE(the_row_of_a_host_that_never_comes_back_goes)
{
	struct host a = start_host("a");

	assert_ok(tell(&a, 'r'));
	store = open_host("b");
	end_host(&a);
	spoil_owner(O_BEAT_AT, "1");
	becomes_unknown();
	AWAIT(count_of(OWNERS) == 1 || sweep(store) > 0);
	assert_int_equal(count_of(OWNERS), 1);
	assert_int_equal(processes_connected(), 1);
}

/* --- effects -------------------------------------------------------------- */

static struct host
start_delivery(void)
{
	struct host a = start_host("a");

	assert_ok(tell(&a, 'r'));
	store = open_host("b");
	assert_int_equal(add_topics(1), 0);
	assert_true(try_emit(&a.lease, "mail", "payload", 7));
	assert_ok(tell(&a, 'f'));
	assert_ok(tell(&a, 'b'));
	return a;
}

static void
wait_until_due(struct effect *e)
{
	int64_t at;
	enum rc rc;

	AWAIT((rc = store_effect_next(store, "mail", e, &at)) == RC_OK ||
	    sweep(store) > 0);
	assert_ok(rc);
}

CASE(tried_by_a_silent_host_an_effect_is_due_again)
{
	struct host a = start_delivery();
	struct effect_end end;
	struct effect e;

	silence(&a);
	wait_until_due(&e);
	assert_ok(store_effect_begin(store, &e));
	assert_int_equal(e.attempts, 2);
	wake(&a);
	assert_int_equal(tell(&a, 'd'), RC_LOST);
	memset(&end, 0, sizeof(end));
	end.state = EFFECT_DELIVERED;
	assert_ok(store_effect_end(store, &e, &end));
	effect_free(&e);
	end_host(&a);
}

CASE(delivered_before_another_try_an_effect_is_delivered)
{
	struct host a = start_delivery();
	struct effect e;
	int64_t at;

	silence(&a);
	wait_until_due(&e);
	wake(&a);
	assert_ok(tell(&a, 'd'));
	assert_int_equal(store_effect_begin(store, &e), RC_LOST);
	effect_free(&e);
	assert_int_equal(
	    store_effect_next(store, "mail", &e, &at), RC_NOTFOUND);
	end_host(&a);
}

/* --- all ------------------------------------------------------------------ */

/* No server can be asked: the callers free what they have passed all the
 * same. */
CASE(without_a_server_a_record_is_left_empty)
{
	static const char resource[] = "0123456789abcdef0123456789abcdef";
	struct store_options o = options();
	struct effect effect;
	struct record record;
	int64_t at;

	o.busy_timeout = 200;
	store = open_with(o);
	(void)control("server freeze");
	memset(&record, 0xa5, sizeof(record));
	assert_int_not_equal(store_status(store, resource, &record), RC_OK);
	record_free(&record);
	memset(&record, 0xa5, sizeof(record));
	assert_int_not_equal(store_job_next(store, &record), RC_OK);
	record_free(&record);
	memset(&record, 0xa5, sizeof(record));
	assert_int_not_equal(store_job_abandoned(store, &record), RC_OK);
	record_free(&record);
	memset(&effect, 0xa5, sizeof(effect));
	assert_int_not_equal(
	    store_effect_next(store, "mail", &effect, &at), RC_OK);
	effect_free(&effect);
	(void)control("server thaw");
}

static int
teardown_hosts(void **state)
{
	end_children();
	(void)control("server thaw"); /* if the case has failed before */
	store_close(store);
	store = NULL;
	(void)!system(textf("rm -rf %s/a %s/b", dir, dir));
	return teardown(state);
}

GROUP(setup_server, stop_servers)
