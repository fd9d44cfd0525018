/*
 * store_call.h: the store, as a loop calls it.  What is stored is what the
 * functions of store.h store; and nothing waits but where the loop waits.
 */
#include "config.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* How long a caller waits for a lock (ms). */
#define PATIENCE 500

#include "store_fixture.h"

#include "loop.h"
#include "store_call.h"

static struct loop *loop;

struct called {
	struct store_call call;
	bool done;
};

static void
go_round(void)
{
	loop_round(loop, clock_mono() + 100);
}

static int
open_calls(void)
{
	assert_ok(loop_open(&loop));
	assert_ok(store_call_open(store, loop, 4));
	return 0;
}

static int
setup_calls(void **state)
{
	return setup(state) != 0 ? -1 : open_calls();
}

static int
setup_synced_calls(void **state)
{
	return setup_synced(state) != 0 ? -1 : open_calls();
}

static int
teardown_calls(void **state)
{
	store_call_close(store);
	loop_close(loop);
	return teardown(state);
}

#define CALL_TEST(name) TEST_WITH(name, setup_calls, teardown_calls)

/* --- the words ------------------------------------------------------------ */

static void
called_done(struct store_call *call)
{
	struct called *c = (struct called *)(void *)call;

	assert_false(c->done);
	c->done = true;
}

static struct called
called(void)
{
	return (struct called){ .call.done = called_done };
}

static enum rc
result_of(struct called *c, bool at_once)
{
	assert_false(at_once && c->done);
	while (!at_once && !c->done)
		go_round();
	return c->call.rc;
}

static enum rc
call_lookup(
    const char *key, struct record *r, struct store_inline_answer *small)
{
	const struct store_reservation what = reservation(key);
	struct called c = called();

	return result_of(
	    &c, store_call_lookup(store, &c.call, &what.identity, r, small));
}

static enum record_state
state_by_call(const char *key)
{
	struct record r;
	enum record_state state = RECORD_NONE;
	enum rc rc = call_lookup(key, &r, NULL);

	if (rc == RC_OK)
		state = r.state;
	else
		assert_int_equal(rc, RC_NOTFOUND);
	record_free(&r);
	return state;
}

struct admitted {
	struct called c;
	struct store_reservation what;
	struct store_lease lease;
	struct store_ticket ticket;
	enum decision decision;
	struct record found;
	bool at_once;
};

static void
begin_admit(struct admitted *a, bool accepts)
{
	const struct store_asked asked = { .what = &a->what,
		.lease = accepts ? NULL : &a->lease,
		.ticket = accepts ? &a->ticket : NULL,
		.max_queue = 100,
		.decision = &a->decision,
		.found = &a->found };

	a->c = called();
	a->at_once = store_call_admit(store, &a->c.call, &asked);
}

static enum rc
end_admit(struct admitted *a)
{
	enum rc rc = result_of(&a->c, a->at_once);

	record_free(&a->found);
	return rc;
}

static enum rc
call_reserve(const char *key, struct store_lease *lease, enum decision *d)
{
	struct admitted a = { .what = reservation(key) };
	enum rc rc;

	begin_admit(&a, false);
	rc = end_admit(&a);
	*lease = a.lease;
	*d = a.decision;
	return rc;
}

static struct store_lease
reserved(const char *key)
{
	struct store_lease lease;
	enum decision d;

	assert_ok(call_reserve(key, &lease, &d));
	assert_int_equal(d, DECIDE_RUN);
	return lease;
}

static enum rc
call_finish(const struct store_lease *lease, struct store_outcome *o)
{
	struct called c = called();
	struct store_finished done;
	enum rc rc = result_of(
	    &c, store_call_finish(store, &c.call, lease, HOUR, &o, &done));

	if (rc == RC_OK)
		assert_true(done.expires_at > 0);
	assert_int_equal(o == NULL, rc == RC_PENDING);
	store_outcome_free(o);
	return rc;
}

/* --- any store ------------------------------------------------------------ */

CALL_TEST(a_request_has_the_answer_that_its_run_gave)
{
	static const size_t lengths[] = { 0, 10, 3000, 200000, 1000000 };

	for (size_t i = 0; i < COUNT(lengths); i++) {
		const char *key = textf("%zu", lengths[i]);
		struct store_outcome *o = outcome(RECORD_COMPLETED);
		struct store_inline_answer small;
		struct store_lease lease;
		struct record r;

		assert_int_equal(state_by_call(key), RECORD_NONE);
		lease = reserved(key);
		assert_int_equal(state_by_call(key), RECORD_IN_PROGRESS);
		give_body(o, lengths[i]);
		assert_ok(call_finish(&lease, o));
		store_inline_answer_init(&small);
		assert_ok(call_lookup(key, &r, &small));
		assert_int_equal(r.state, RECORD_COMPLETED);
		assert_int_equal(small.is, lengths[i] <= STORE_INLINE);
		record_free(&r);
		store_inline_answer_free(&small);
		assert_true(answer_is(lease.id, lengths[i]));
	}
}

CALL_TEST(a_request_that_is_accepted_is_stored)
{
	static const size_t lengths[] = { 0, 10, 200000, 1000000 };

	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct admitted a = { .what = reservation(
					  textf("%zu", lengths[i])) };
		unsigned char *body = make_bytes(lengths[i]);
		struct record job;

		give_request(&a.what, body, lengths[i]);
		begin_admit(&a, true);
		assert_ok(end_admit(&a));
		assert_int_equal(a.decision, DECIDE_RUN);
		assert_false(a.ticket.full);
		assert_ok(store_status(store, a.ticket.resource, &job));
		assert_int_equal(job.state, RECORD_PENDING);
		assert_true(request_is(job.id, "A=B", 4, (int64_t)lengths[i]));
		record_free(&job);
		free(body);
	}
}

CALL_TEST(who_asks_for_a_key_that_is_taken_gets_its_record)
{
	struct admitted a = { .what = reservation("k") };
	struct store_lease lease = reserved("k");

	begin_admit(&a, false);
	assert_ok(result_of(&a.c, a.at_once));
	assert_int_equal(a.decision, DECIDE_BUSY);
	assert_int_equal(a.found.id, lease.id);
	record_free(&a.found);
}

/* As many as a helper for each call would not do. */
CALL_TEST(many_calls_are_under_way_at_once)
{
	static struct admitted a[200];
	const size_t n = COUNT(a);

	for (size_t i = 0; i < n; i++) {
		memset(&a[i], 0, sizeof(a[i]));
		a[i].what = reservation(i % 2 == 0 ? textf("%zu", i) : "same");
		a[i].what.identity.key = strdup(a[i].what.identity.key);
		begin_admit(&a[i], false);
	}
	for (size_t i = 0; i < n; i++) {
		assert_ok(end_admit(&a[i]));
		assert_int_equal(a[i].decision == DECIDE_RUN,
		    i % 2 == 0 || a[i].lease.id != 0);
		free((void *)(uintptr_t)a[i].what.identity.key);
	}
	assert_int_equal(count_keys(RECORD_IN_PROGRESS), n / 2 + 1);
}

CALL_TEST(a_lease_ends_once)
{
	struct store_lease lease = reserved("k");

	assert_ok(call_finish(&lease, outcome(RECORD_COMPLETED)));
	assert_int_equal(
	    call_finish(&lease, outcome(RECORD_COMPLETED)), RC_LOST);
}

static enum rc
in_a_helper(void *arg)
{
	*(pthread_t *)arg = pthread_self();
	return RC_LIMIT;
}

CALL_TEST(work_is_done_by_another_thread)
{
	struct called c = called();
	pthread_t thread = pthread_self();

	store_call_work(store, &c.call, in_a_helper, &thread);
	assert_int_equal(result_of(&c, false), RC_LIMIT);
	assert_false(pthread_equal(thread, pthread_self()));
}

/* --- another process holds the write lock --------------------------------- */

CALL_TEST(a_lock_ends_calls_in_time_and_holds_up_no_lookup)
{
	sqlite3 *other = raw_open(file);
	struct store_lease run = reserved("run"), lease;
	struct admitted job = { .what = reservation("job") };
	int64_t begun = clock_mono();
	enum decision d;

	raw_run(other, "BEGIN IMMEDIATE");
	assert_int_equal(call_reserve("k", &lease, &d), RC_BUSY);
	assert_in_range(clock_mono() - begun, PATIENCE, 3 * PATIENCE);
	assert_int_equal(state_by_call("k"), RECORD_NONE);
	give_request(&job.what, NULL, 0);
	begin_admit(&job, true);
	assert_int_equal(end_admit(&job), RC_BUSY);
	assert_int_equal(state_by_call("job"), RECORD_NONE);
	begun = clock_mono();
	assert_int_equal(
	    call_finish(&run, outcome(RECORD_COMPLETED)), RC_PENDING);
	assert_in_range(clock_mono() - begun, PATIENCE, 3 * PATIENCE);
	assert_int_equal(state_by_call("run"), RECORD_IN_PROGRESS);
	/* nothing new while it is not recorded, and at once */
	assert_int_equal(call_reserve("k", &lease, &d), RC_UNRECORDED);
	raw_run(other, "ROLLBACK");
	while (state_by_call("run") != RECORD_COMPLETED)
		go_round();
	(void)reserved("k");
	begin_admit(&job, true);
	assert_ok(end_admit(&job));
	sqlite3_close(other);
}

/* --- a lookup that waits for nothing -------------------------------------- */

static bool
is_at_once(const char *key)
{
	const struct store_reservation what = reservation(key);
	struct called c = called();
	struct record r;
	bool at_once =
	    store_call_lookup(store, &c.call, &what.identity, &r, NULL);

	assert_ok(result_of(&c, at_once));
	record_free(&r);
	return at_once;
}

/* Its pages are on the disk, and not in memory. */
static bool
leave_memory(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	bool left = fd != -1 && fsync(fd) == 0 &&
	    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;

	close(fd);
	return left;
}

/* The other descriptor of the file is closed in a child, which has no locks. */
static void
leave_memory_all(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(!leave_memory(file) ||
		    !leave_memory(textf("%s-wal", file)));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

CALL_TEST(what_is_in_memory_is_found_at_once_and_else_by_a_helper)
{
	struct store_lease lease = reserve("k");

	leave_memory_all();
	if (is_at_once("k") || !is_at_once("k"))
		skip(); /* such reads are not known here */
	assert_ok(call_finish(&lease, outcome(RECORD_COMPLETED)));
	leave_memory_all();
	assert_false(is_at_once("k"));
	assert_true(is_at_once("k"));
	assert_int_equal(state_by_call("k"), RECORD_COMPLETED);
}

CALL_TEST(a_lookup_sees_the_last_commit)
{
	struct record r;

	(void)reserved("k");
	for (int i = 2; i < 50; i++) {
		set_value("k", K_ATTEMPT, i);
		assert_ok(call_lookup("k", &r, NULL));
		assert_int_equal(r.attempt, i);
		record_free(&r);
	}
}

CALL_TEST(nothing_is_made_durable_where_commits_are_not_synced)
{
	const struct record r = { .unconfirmed = true };

	assert_true(store_is_durable(store, &r));
}

TEST_WITH(
    what_is_synced_and_confirmed_is_durable, setup_synced_calls, teardown_calls)
{
	struct record r = { .state = RECORD_COMPLETED };

	assert_true(store_is_durable(store, &r));
	r.unconfirmed = true;
	assert_false(store_is_durable(store, &r));
}

/* Linux 5.9 and 5.10 have a bug: see preadv2(2).  In so many reads; 0: in
 * none. */
static int tells_an_end;

ssize_t
preadv2(int fd, const struct iovec *v, int n, off_t offset, int flags)
{
	return tells_an_end > 0 && --tells_an_end == 0
	    ? 0
	    : syscall(SYS_preadv2, fd, v, n, offset, (off_t)0, flags);
}

/* What is not in memory is read by a helper, and not taken for zeros: a long
 * row has pages of bytes alone. */
CALL_TEST(a_kernel_that_tells_an_end_of_the_file_too_early_is_not_believed)
{
	struct store_outcome *o = outcome(RECORD_COMPLETED);
	struct store_inline_answer small;
	struct store_lease lease;
	struct record r;
	char key[3001];

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	lease = reserved(key);
	give_body(o, STORE_INLINE);
	assert_ok(call_finish(&lease, o));
	raw("PRAGMA wal_checkpoint(TRUNCATE)");
	for (int n = 1; n <= 20; n++) {
		/* A commit empties the cache. */
		(void)reserved(textf("%d", n));
		store_inline_answer_init(&small);
		tells_an_end = n;
		assert_ok(call_lookup(key, &r, &small));
		tells_an_end = 0;
		assert_int_equal(r.state, RECORD_COMPLETED);
		assert_int_equal(small.body.len, STORE_INLINE);
		assert_true(are_bytes(small.body.data, STORE_INLINE));
		record_free(&r);
		store_inline_answer_free(&small);
	}
}

static int
begin_group(UNUSED void **state)
{
	alarm(300);
	return 0;
}

GROUP(begin_group, NULL)
