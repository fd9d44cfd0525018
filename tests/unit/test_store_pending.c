/*
 * store on PostgreSQL: the outcome of a COMMIT is not known.  What a client was
 * told stays true: a key that did not run is free again, and an outcome is
 * recorded once.
 *
 * The store's connections go through a proxy that cuts them at a COMMIT.  The
 * test itself is connected to the server.
 */
#include "config.h"

#include <stdatomic.h>

#define PATIENCE 1000

#include "store_fixture.h"
#include "postgres.h"

static char direct[256], through[256];

static int
setup_servers(void **state)
{
	if (setup_server(state) != 0)
		return -1;
	snprintf(direct, sizeof(direct), "%s", getenv("TEST_DATABASE"));
	snprintf(through, sizeof(through), "%s", control("proxy net server"));
	return 0;
}

static enum conf_durability durability = CONF_DURABILITY_NORMAL;

static struct store *
open_at(const char *database, int64_t busy_timeout, unsigned connections,
    int64_t owner_timeout)
{
	struct store_options o = options();

	snprintf(uri, sizeof(uri), "%s&options=-csearch_path%%3D%s", database,
	    schema);
	o.busy_timeout = busy_timeout;
	o.owner_timeout = owner_timeout;
	o.durability = durability;
	o.workers = connections;
	return open_with(o);
}

static struct store *
open_slots(unsigned connections, int64_t owner_timeout)
{
	return open_at(through, PATIENCE, connections, owner_timeout);
}

static struct store *
open_through(int64_t owner_timeout)
{
	return open_slots(1, owner_timeout);
}

static int
setup_proxy(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	store = open_through(30000);
	/* The spec, and the statements of its connections, are there then. */
	(void)put("first", RECORD_COMPLETED);
	return 0;
}

static int
teardown_proxy(void **state)
{
	(void)control("net cut_at none");
	(void)control("net back");
	(void)control("server synchronous ");
	return teardown(state);
}

/* --- the words ------------------------------------------------------------ */

#define await(sql) AWAIT(raw_number(sql) == 1)

/* Waits until the key is in that state; RECORD_NONE: until it is not there. */
#define await_state(key, state) AWAIT(row_is((key), (state)))

/* Waits until the keeper has recorded all that it has taken. */
static void
wait_for_keeper(void)
{
	struct store_reservation r = reservation("probe");
	struct store_lease lease;
	struct record found;
	enum decision d;
	enum rc rc;

	AWAIT((rc = store_reserve(store, &r, &lease, &d, &found)) == RC_OK ||
	    found.fingerprint_spec != NULL);
	assert_ok(rc);
	record_free(&found);
	if (d == DECIDE_RUN)
		settle(&lease, RECORD_COMPLETED);
}

/* While outcomes wait for the keeper, nothing new begins. */
static void
assert_nothing_begins(void)
{
	assert_int_equal(reserve_fails("another"), RC_UNRECORDED);
}

/* The key runs, as the attempt of that number, and its outcome is recorded. */
static void
runs_again(int attempt)
{
	struct store_lease lease = reserve("k");

	assert_int_equal(lease.attempt, attempt);
	settle(&lease, RECORD_COMPLETED);
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
}

/* What another host does that has not seen this process move. */
static void
suspect(void)
{
	suspect_owner("k");
	await_state("k", RECORD_UNKNOWN);
}

#define CASE(name) TEST_WITH(name, setup_proxy, teardown_proxy)

/* --- reserve -------------------------------------------------------------- */

/* The COMMIT, or the answer to it, is lost, and the next connection tells. */
static void
once_although_cut(bool at_the_end)
{
	static const char *const cuts[] = { "answer-commit", "commit" };
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(cuts); i++) {
		if (!at_the_end)
			(void)control("net cut_at %s", cuts[i]);
		lease = reserve(cuts[i]);
		assert_int_equal(lease.attempt, 1);
		if (at_the_end)
			(void)control("net cut_at %s", cuts[i]);
		settle(&lease, RECORD_COMPLETED);
		assert_int_equal(decision_for(cuts[i]), DECIDE_REPLAY);
	}
}

CASE(reserved_once_although_the_connection_is_lost)
{
	once_although_cut(false);
}

CASE(finished_although_the_connection_is_lost)
{
	once_although_cut(true);
}

/* Nothing has run, so the keeper releases the key, or leaves it free. */
static void
reserve_is_cut(
    const char *at, enum record_state meanwhile, bool suspected, int attempt)
{
	(void)control("net cut_at %s away", at);
	assert_int_equal(reserve_fails("k"), RC_IO);
	await_state("k", meanwhile);
	assert_nothing_begins();
	if (suspected)
		suspect();
	(void)control("net back");
	wait_for_keeper();
	await_state("k", attempt == 2 ? RECORD_FAILED_RETRYABLE : RECORD_NONE);
	runs_again(attempt);
}

CASE(reserved_and_not_known_the_key_is_released)
{
	reserve_is_cut("answer-commit", RECORD_IN_PROGRESS, false, 2);
}

CASE(not_reserved_and_not_known_the_key_stays_free)
{
	reserve_is_cut("commit", RECORD_NONE, false, 1);
}

CASE(suspected_meanwhile_the_key_is_released_too)
{
	reserve_is_cut("answer-commit", RECORD_IN_PROGRESS, true, 2);
}

/* A group took the place, its results were lost, and the next connection is one
 * by which nothing may begin. */
static void
server_sets(const char *setting)
{
	rawf("ALTER SYSTEM %s", setting);
	raw("SELECT pg_reload_conf()");
}

CASE(reserved_and_not_read_the_key_is_released)
{
	store_close(store);
	store = NULL;
	server_sets("SET fsync = on");
	server_sets("SET full_page_writes = on");
	await("SELECT current_setting('fsync') = 'on'");
	durability = CONF_DURABILITY_FULL;
	store = open_through(30000);
	durability = CONF_DURABILITY_NORMAL;
	(void)put("second", RECORD_COMPLETED);
	server_sets("SET synchronous_commit = off");
	(void)control("net cut_at answer-commit");
	assert_int_equal(reserve_fails("k"), RC_UNSAFE);
	server_sets("RESET synchronous_commit");
	await_state("k", RECORD_FAILED_RETRYABLE);
	wait_for_keeper();
	runs_again(2);
	server_sets("RESET fsync");
	server_sets("RESET full_page_writes");
}

/* The COMMIT waits for a standby, for longer than anybody waits for it. */
CASE(reserved_later_the_key_is_released)
{
	(void)control("server synchronous ghost");
	assert_int_equal(reserve_fails("k"), RC_IO);
	assert_nothing_begins();
	await_state("k", RECORD_NONE);
	(void)control("server synchronous ");
	wait_for_keeper();
	await_state("k", RECORD_FAILED_RETRYABLE);
	runs_again(2);
}

/* The server is silent, and may have the COMMIT or not. */
CASE(reserved_or_not_by_a_server_that_freezes)
{
	(void)control("net cut_at hold-commit away");
	assert_int_equal(reserve_fails("k"), RC_IO);
	(void)control("server freeze");
	(void)control("net release");
	(void)control("net back");
	assert_nothing_begins();
	(void)control("server thaw");
	wait_for_keeper();
	assert_int_not_equal(state_of("k"), RECORD_IN_PROGRESS);
	put("k", RECORD_COMPLETED);
	assert_true(row_is("k", RECORD_COMPLETED));
}

/* A server that crashed gives numbers away again that it had given to this
 * process, as here to another row. */
CASE(with_a_new_connection_no_number_of_the_old_one_is_used)
{
	struct store_reservation r = reservation("k");
	struct store_lease lease;

	store_close(store);
	store = open_through(1000000); /* the keeper sends nothing */
	lease = put("second", RECORD_COMPLETED);
	add_to("second", K_ID, 1);
	r.max_active = 10; /* so that it shares no transaction */
	(void)control("net cut_at answer");
	lease = reserve_as(&r);
	settle(&lease, RECORD_COMPLETED);
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
}

/* --- start ---------------------------------------------------------------- */

/* No program has run, so the job is due at once, and may be started again. */
CASE(of_a_start_that_is_not_known_the_job_is_due_again)
{
	static const struct {
		const char *key, *at;
		enum record_state state;
		int attempt;
	} rows[] = {
		{ "started", "answer-commit", RECORD_FAILED_RETRYABLE, 2 },
		{ "not started", "commit", RECORD_PENDING, 1 },
	};
	struct store_reservation r = reservation("");
	struct store_ticket ticket;
	struct store_lease lease;
	struct record job, found;
	enum decision d;

	give_request(&r, NULL, 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		r.identity.key = rows[i].key;
		assert_ok(store_accept(store, &r, 10, &ticket, &d, &found));
		job = next_job();
		(void)control("net cut_at %s away", rows[i].at);
		assert_int_equal(
		    store_job_start(store, &job, &r, &lease), RC_IO);
		record_free(&job);
		assert_nothing_begins();
		(void)control("net back");
		await_state(rows[i].key, rows[i].state);
		wait_for_keeper();
		assert_ok(start_next(&r, &lease));
		assert_int_equal(lease.attempt, rows[i].attempt);
		settle(&lease, RECORD_COMPLETED);
	}
}

/* --- finish --------------------------------------------------------------- */

/* In groups: it is stored once, and erased once. */
CASE(a_stored_request_is_counted_although_answers_are_lost)
{
	static const char *const cut[] = { "answer-commit", "commit" };
	struct store_reservation r = reservation("k");
	struct store_lease lease;

	r.reconcile_delay = HOUR;
	give_request(&r, "body", 4);
	for (size_t i = 0; i < COUNT(cut); i++) {
		r.identity.key = i == 0 ? "a" : "b";
		(void)control("net cut_at %s", cut[i]);
		lease = reserve_as(&r);
		assert_int_equal(kept_bytes(), 8);
		(void)control("net cut_at %s", cut[i]);
		settle(&lease, RECORD_COMPLETED);
		assert_int_equal(kept_bytes(), 0);
		assert_int_equal(count_of(REQUESTS), 0);
	}
}

/* The group took place, and found no lease of that attempt. */
CASE(not_finished_by_a_group_whose_answer_is_lost)
{
	struct store_lease lease = reserve("k");

	complete_elsewhere("k", 299);
	(void)control("net cut_at answer-commit");
	assert_int_equal(finish(&lease, outcome(RECORD_COMPLETED)), RC_LOST);
	assert_int_equal(value_of("k", K_STATUS), 299);
}

/* Finishes the key with a body of 3 bytes, hears that it is pending, and finds
 * that the keeper ends it. */
static void
finish_is_cut(
    const char *trouble, enum record_state meanwhile, const char *end_of_it)
{
	struct store_lease lease = reserve("k");
	struct store_outcome *o = outcome(RECORD_COMPLETED);

	give_body(o, 3);
	(void)control("%s", trouble);
	assert_int_equal(finish(&lease, o), RC_PENDING);
	assert_nothing_begins();
	if (meanwhile == RECORD_UNKNOWN)
		suspect();
	else
		await_state("k", meanwhile);
	(void)control("%s", end_of_it);
	await_state("k", RECORD_COMPLETED);
	wait_for_keeper();
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
	assert_true(answer_is(lease.id, 3));
	assert_int_equal(
	    finish(&lease, outcome(RECORD_FAILED_RETRYABLE)), RC_LOST);
}

CASE(finished_and_not_known_the_answer_stays)
{
	finish_is_cut(
	    "net cut_at answer-commit away", RECORD_COMPLETED, "net back");
}

CASE(not_finished_and_not_known_the_keeper_finishes)
{
	finish_is_cut("net cut_at commit away", RECORD_IN_PROGRESS, "net back");
}

CASE(finished_later_the_answer_stays)
{
	finish_is_cut("server synchronous ghost", RECORD_IN_PROGRESS,
	    "server synchronous ");
}

CASE(suspected_meanwhile_the_keeper_finishes_late)
{
	finish_is_cut("net cut_at commit away", RECORD_UNKNOWN, "net back");
}

/* --- a handler that has stored its own response --------------------------- */

static struct store_lease
reserve_and_respond(const char *key)
{
	struct store_lease lease = reserve(key);

	rawf("SELECT once_response('%s', 202, NULL, 'own')", token_of(&lease));
	return lease;
}

static void
assert_own_response(const struct store_lease *lease, const char *key)
{
	struct response r;
	struct spool *body;

	assert_int_equal(decision_for(key), DECIDE_REPLAY);
	response_init(&r);
	assert_ok(
	    store_answer(store, owner_of(lease->id), lease->id, &r, &body));
	assert_int_equal(r.status, 202);
	assert_int_equal(r.body_len, 3);
	assert_memory_equal(r.body, "own", 3);
	response_free(&r);
	spool_free(body);
}

CASE(a_response_of_the_handler_stands_when_its_attempt_ends)
{
	static const char *const cuts[] = { "none", "answer-commit", "commit" };
	struct store_finished done;
	struct store_outcome *o;
	struct store_lease lease;
	const char *key;

	for (size_t i = 0; i < COUNT(run_ends) * COUNT(cuts); i++) {
		key = textf("k%zu", i);
		lease = reserve_and_respond(key);
		o = outcome(run_ends[i / COUNT(cuts)]);
		(void)control("net cut_at %s", cuts[i % COUNT(cuts)]);
		assert_ok(store_finish(store, &lease, HOUR, &o, &done));
		store_outcome_free(o);
		assert_true(done.answered);
		assert_true(done.expires_at > 0);
		assert_own_response(&lease, key);
	}
}

CASE(a_response_of_the_handler_stands_whatever_the_keeper_finds)
{
	static const char *const cuts[] = { "answer-commit away",
		"commit away" };
	struct store_lease lease;
	const char *key;

	for (size_t i = 0; i < COUNT(cuts); i++) {
		key = textf("k%zu", i);
		lease = reserve_and_respond(key);
		(void)control("net cut_at %s", cuts[i]);
		assert_int_equal(
		    finish(&lease, outcome(RECORD_FAILED_RETRYABLE)),
		    RC_PENDING);
		(void)control("net back");
		wait_for_keeper();
		assert_own_response(&lease, key);
		assert_int_equal(count_with(K_TOKEN), 0);
	}
}

/* A commit with synchronous_commit = off is seen before it is written.  The
 * process that would write it soon does not run here. */
CASE(a_response_that_was_told_survives_a_crash_of_the_server)
{
	struct store_lease lease;
	struct record record;
	pid_t writer;

	store_close(store);
	store = open_through(1000000); /* the keeper commits nothing */
	raw("SET synchronous_commit = off");
	writer = (pid_t)raw_number("SELECT pid FROM pg_stat_activity WHERE "
				   "backend_type = 'walwriter'");
	assert_true(writer > 1);
	assert_int_equal(kill(writer, SIGSTOP), 0);
	lease = reserve_and_respond("k");
	record = find("k");
	assert_true(record.unconfirmed);
	assert_ok(store_make_durable(store, &record));
	record_free(&record);
	(void)control("server kill");
	(void)control("server start");
	assert_own_response(&lease, "k");
}

/* --- a COMMIT that only the primary has ----------------------------------- */

static atomic_bool cancelling;

/* Cancels every wait for the standby.  False: it is to go on. */
static bool
cancel_waits(void)
{
	(void)control("server sql SELECT count(pg_cancel_backend(pid)) FROM "
		      "pg_stat_activity WHERE wait_event = 'SyncRep'");
	return !atomic_load(&cancelling);
}

static void *
cancel(void *arg)
{
	(void)arg;
	AWAIT_EVERY(30, cancel_waits());
	return NULL;
}

static pthread_t
start_cancelling(void)
{
	pthread_t thread;

	atomic_store(&cancelling, true);
	thread = start_thread(cancel, NULL);
	return thread;
}

static void
stop_cancelling(pthread_t thread)
{
	atomic_store(&cancelling, false);
	end_thread(thread);
}

CASE(with_a_warning_nothing_is_told)
{
	struct store_lease lease = reserve("l");
	struct store_outcome *o = outcome(RECORD_COMPLETED);
	pthread_t thread;

	give_body(o, 3);
	(void)control("server synchronous ghost");
	thread = start_cancelling();
	assert_int_equal(reserve_fails("k"), RC_IO);
	assert_int_equal(finish(&lease, o), RC_PENDING);
	assert_nothing_begins();
	stop_cancelling(thread);
	(void)control("server synchronous ");
	wait_for_keeper();
	await_state("k", RECORD_FAILED_RETRYABLE);
	assert_int_equal(decision_for("l"), DECIDE_REPLAY);
	assert_true(answer_is(lease.id, 3));
	runs_again(2);
}

static struct record
find_in(struct store *s, const char *key)
{
	struct store_reservation r = reservation(key);
	struct record record;

	assert_ok(store_find(s, &r.identity, &record));
	assert_int_equal(record.state, RECORD_COMPLETED);
	return record;
}

/* A server's standby, for which COMMITs wait. */
static void
make_standby(const char *name)
{
	(void)control("make %s server", name);
	(void)control("server caught-up %s", name);
	(void)control("server synchronous standby");
	await("SELECT count(*) FROM pg_stat_replication "
	      "WHERE sync_state = 'sync'");
}

/* Until the keeper of a store with a short owner_timeout has seen what is so
 * now. */
static void
wait_for_beats(void)
{
	const int64_t seen = last_beat() + 2;

	AWAIT(last_beat() > seen);
}

/* Another process finds it as any other answer. */
CASE(an_answer_that_only_the_primary_has_is_not_told)
{
	struct store_lease lease = reserve("l");
	struct record first, l;
	struct store *other;
	pthread_t thread;

	make_standby("calm");
	other = open_slots(6, 2000);
	first = find_in(other, "first");
	wait_for_beats();
	(void)control("calm freeze");
	thread = start_cancelling();
	assert_int_equal(finish(&lease, outcome(RECORD_COMPLETED)), RC_PENDING);
	l = find_in(other, "l");
	assert_int_equal(store_make_durable(other, &l), RC_IO);
	/* the standby has this one */
	assert_ok(store_make_durable(other, &first));
	stop_cancelling(thread);
	(void)control("calm thaw");
	(void)control("server caught-up calm");
	assert_ok(store_make_durable(other, &l));
	store_close(other);
	wait_for_keeper();
	assert_int_equal(decision_for("l"), DECIDE_REPLAY);
	record_free(&first);
	record_free(&l);
	(void)control("calm stop");
}

/* While the standby is away an operator lets COMMITs pass without it, and then
 * does not any more. */
CASE(an_old_answer_that_no_standby_confirmed_is_not_told)
{
	struct record first = find_in(store, "first");
	pthread_t thread;
	struct store *other;

	(void)control("server synchronous ");
	other = open_slots(6, 2000);
	wait_for_beats();
	(void)control("server synchronous ghost");
	thread = start_cancelling();
	/* until its keeper has seen that COMMITs wait for a standby */
	AWAIT(store_make_durable(other, &first) != RC_OK);
	assert_int_equal(store_make_durable(other, &first), RC_IO);
	stop_cancelling(thread);
	store_close(other);
	record_free(&first);
}

/* It was begun before the key was completed, and stays. */
CASE(an_open_transaction_makes_no_replay_of_another_key_a_write)
{
	struct store_lease lease = reserve("k");
	struct record k, first;
	struct store *other;
	int64_t before;

	make_standby("other");
	raw("BEGIN");
	set_value("first", K_UPDATED_AT, 1);
	settle(&lease, RECORD_COMPLETED);
	other = open_slots(6, 30000); /* whose keeper sees that */
	k = find_in(other, "k");
	before = commits();
	for (int i = 0; i < 3; i++)
		assert_ok(store_make_durable(other, &k));
	assert_int_equal(commits(), before);
	raw("COMMIT");
	first = find_in(other, "first");
	assert_ok(store_make_durable(other, &first));
	assert_int_equal(commits(), before + 1);
	store_close(other);
	record_free(&first);
	record_free(&k);
	(void)control("other stop");
}

struct asker {
	struct store *store;
	struct record record;
	enum rc rc;
};

static void *
ask(void *arg)
{
	struct asker *a = arg;

	a->rc = store_make_durable(a->store, &a->record);
	return NULL;
}

/* The folder of a server's socket. */
static void
folder_of(const char *database, char out[200])
{
	assert_int_equal(
	    sscanf(database, "postgresql:///postgres?host=%199[^&]", out), 1);
}

/* A COMMIT is tried again on the standby that was promoted meanwhile: there it
 * says nothing of what the old primary had. */
CASE(an_answer_that_a_failover_forgets_is_not_told)
{
	struct store_lease lease = reserve("l");
	char primary[200], heir[200], both[500];
	pthread_t canceller, thread;
	struct asker asker;

	make_standby("heir");
	folder_of(direct, primary);
	folder_of(control("heir uri"), heir);
	snprintf(both, sizeof(both),
	    "postgresql:///postgres?host=%s,%s&user=postgres"
	    "&target_session_attrs=read-write",
	    primary, heir);
	asker.store = open_at(both, 20000, 6, 100000);
	(void)control("server caught-up heir");
	(void)control("heir stop");
	canceller = start_cancelling();
	assert_int_equal(finish(&lease, outcome(RECORD_COMPLETED)), RC_PENDING);
	stop_cancelling(canceller);
	asker.record = find_in(asker.store, "l");
	thread = start_thread(ask, &asker);
	await("SELECT count(*) > 0 FROM pg_stat_activity "
	      "WHERE wait_event = 'SyncRep'");
	(void)control("server kill");
	(void)control("heir start");
	(void)control("heir promote");
	end_thread(thread);
	assert_int_equal(asker.rc, RC_IO);
	record_free(&asker.record);
	store_close(asker.store);
	(void)control("heir stop");
	(void)control("server start");
}

GROUP(setup_servers, stop_servers)
