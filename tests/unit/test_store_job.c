/*
 * store: work that is accepted now and done later.
 */
#include "config.h"

#include <poll.h>

#define PATIENCE 2000

#include "metrics.h"
#include "store_fixture.h"
#include "store_lost.h"

#define QUEUE 1000
#define BODY  100 /* the length of each request's */

/* Its body lives until the next one. */
static struct store_reservation
job_for(const char *key)
{
	static unsigned char *body;
	struct store_reservation r = reservation(key);

	free(body);
	body = make_bytes(BODY);
	give_request(&r, body, BODY);
	return r;
}

static enum decision
accept_by(struct store *s, const struct store_reservation *r, unsigned max,
    struct store_ticket *ticket)
{
	enum decision d = DECIDE_GONE;
	struct record found;

	assert_ok(store_accept(s, r, max, ticket, &d, &found));
	if (d == DECIDE_RUN) {
		assert_null(found.fingerprint_spec);
		assert_int_equal(
		    strlen(ticket->resource), ticket->full ? 0 : 32);
	} else {
		assert_true(found.id > 0);
		assert_string_equal(ticket->resource, "");
	}
	record_free(&found);
	return d;
}

static struct store_ticket
accept_job(const char *key)
{
	struct store_reservation r = job_for(key);
	struct store_ticket ticket;

	assert_int_equal(accept_by(store, &r, QUEUE, &ticket), DECIDE_RUN);
	assert_false(ticket.full);
	return ticket;
}

/* The next job's key, or "" if none is due; it is not taken. */
static const char *
next_key(void)
{
	static char key[64];
	struct record job;
	enum rc rc;

	rc = store_job_next(store, &job);
	if (rc != RC_OK)
		assert_int_equal(rc, RC_NOTFOUND);
	snprintf(key, sizeof(key), "%s", rc == RC_OK ? job.key : "");
	record_free(&job);
	return key;
}

/* Takes the next one up. */
static struct store_lease
start_job(void)
{
	struct store_reservation r = reservation("not looked at");
	struct record job = next_job();
	struct store_lease lease;

	assert_ok(store_job_start(store, &job, &r, &lease));
	assert_int_equal(lease.id, job.id);
	assert_int_equal(lease.attempt, job.attempt + 1);
	record_free(&job);
	return lease;
}

/* Released, to be taken up again after that; -1: not by itself. */
static void
release_job(const struct store_lease *lease, int64_t requeue)
{
	struct store_outcome *s = outcome(RECORD_FAILED_RETRYABLE);

	s->requeue = requeue;
	assert_ok(finish(lease, s));
}

static bool
request_is_kept(int64_t id)
{
	const bool is = request_is(id, "A=B", 4, BODY);

	assert_int_equal(count_of(REQUESTS), is);
	return is;
}

/* It lives until the next call. */
static const struct record *
status_at(const char *resource)
{
	static struct record st;

	record_free(&st);
	assert_ok(store_status(store, resource, &st));
	assert_string_equal(st.scope, "alice");
	assert_string_equal(st.path, "/payments");
	return &st;
}

/* --- accepting ----------------------------------------------------------- */

STORE_TEST(what_is_accepted_is_kept_and_waits)
{
	struct store_reservation r = job_for("k");
	struct store_ticket ticket = accept_job("k"), second;
	struct record record = find("k"), job;
	const struct record *st;

	assert_int_equal(record.state, RECORD_PENDING);
	assert_int_equal(record.attempt, 0);
	assert_true(record.accepted && record.queued && !record.unconfirmed);
	assert_string_equal(record.resource, ticket.resource);
	assert_retention("k", HOUR);
	assert_true(request_is_kept(record.id));
	doctor_finds_nothing();

	/* the same again gets the same */
	assert_int_equal(accept_by(store, &r, QUEUE, &second), DECIDE_BUSY);
	assert_int_equal(decision_for("k"), DECIDE_BUSY);
	r.fingerprint[0] ^= 1;
	assert_int_equal(accept_by(store, &r, QUEUE, &second), DECIDE_MISMATCH);

	job = next_job();
	assert_int_equal(job.id, record.id);
	assert_int_equal(job.attempt, 0);
	assert_string_equal(job.scope, "alice");
	assert_string_equal(job.path, "/payments");
	assert_string_equal(job.key, "k");
	assert_string_equal(job.resource, ticket.resource);
	record_free(&job);
	st = status_at(ticket.resource);
	assert_int_equal(st->id, record.id);
	assert_int_equal(st->state, RECORD_PENDING);
	assert_int_equal(st->attempt, 0);
	assert_true(st->queued && !st->replayable && !st->unconfirmed);
	assert_string_equal(st->recovery_point, "started");
	assert_int_equal(st->expires_at, record.expires_at);
	assert_in_range(st->created_at, clock_wall() - 60000, clock_wall());
	record_free(&record);
}

STORE_TEST(what_there_is_already_is_not_accepted)
{
	static const struct {
		enum record_state state;
		enum decision decision;
	} rows[] = {
		{ RECORD_COMPLETED, DECIDE_REPLAY },
		{ RECORD_UNKNOWN, DECIDE_UNKNOWN },
		{ RECORD_IN_PROGRESS, DECIDE_BUSY },
	};
	struct store_reservation r = job_for("k");
	struct store_ticket ticket;
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(rows); i++) {
		delete_all(KEYS);
		lease = reserve("k");
		if (rows[i].state != RECORD_IN_PROGRESS)
			settle(&lease, rows[i].state);
		assert_int_equal(
		    accept_by(store, &r, 0, &ticket), rows[i].decision);
		assert_int_equal(count_of(REQUESTS), 0);
	}
	/* past its retention it is new */
	delete_all(KEYS);
	lease = reserve("k");
	settle_for(&lease, RECORD_COMPLETED, 0);
	ticket = accept_job("k");
	assert_int_equal(count_of(KEYS), 1);
	assert_int_equal(start_job().attempt, 1);
}

STORE_TEST(a_full_queue_keeps_nothing)
{
	struct store_reservation r = job_for("c");
	struct store_ticket ticket;
	struct store_lease lease;

	assert_int_equal(accept_by(store, &r, 0, &ticket), DECIDE_RUN);
	assert_true(ticket.full);
	accept_job("a");
	accept_job("b");
	assert_int_equal(accept_by(store, &r, 4, &ticket), DECIDE_RUN);
	assert_true(ticket.full);
	assert_int_equal(state_of("c"), RECORD_NONE);
	assert_int_equal(count_of(REQUESTS), 2);
	/* a key that waits already is not one too many */
	r = job_for("a");
	assert_int_equal(accept_by(store, &r, 4, &ticket), DECIDE_BUSY);
	/* and a key that runs does not wait */
	lease = start_job();
	r = job_for("c");
	assert_int_equal(accept_by(store, &r, 4, &ticket), DECIDE_RUN);
	assert_false(ticket.full);
	/* a key that was released needs a place too, unless it has one */
	release_job(&lease, -1);
	r = job_for("a");
	assert_int_equal(accept_by(store, &r, 4, &ticket), DECIDE_RUN);
	assert_true(ticket.full);
	assert_int_equal(state_of("a"), RECORD_FAILED_RETRYABLE);
	assert_string_equal(next_key(), "b");
	assert_int_equal(accept_by(store, &r, 6, &ticket), DECIDE_RUN);
	assert_false(ticket.full);
	assert_int_equal(accept_by(store, &r, 1, &ticket), DECIDE_RUN);
	assert_false(ticket.full);
}

/* --- the queue ----------------------------------------------------------- */

STORE_TEST(a_job_is_started_once_and_ends_as_any_key)
{
	struct store_reservation r = reservation("k");
	struct store_ticket ticket = accept_job("k");
	struct record job = next_job();
	struct store_lease lease, second;
	const struct record *st, *record;

	r.lease = 5000;
	assert_ok(store_job_start(store, &job, &r, &lease));
	assert_int_equal(store_job_start(store, &job, &r, &second), RC_LOST);
	record_free(&job);
	assert_int_equal(lease.attempt, 1);
	assert_int_equal(strlen(lease.token), RECORD_TOKEN_LEN);
	assert_string_equal(lease.recovery_point, "started");
	record = record_of("k");
	assert_string_equal(record->downstream, lease.downstream);
	assert_string_equal(record->token, lease.token);
	assert_true(record->accepted && !record->queued);
	assert_string_equal(next_key(), "");
	assert_int_equal(decision_for("k"), DECIDE_BUSY);
	assert_true(request_is_kept(lease.id));
	st = status_at(ticket.resource);
	assert_int_equal(st->state, RECORD_IN_PROGRESS);
	assert_false(st->queued);

	answer_with(&lease, 10);
	assert_true(answer_is(lease.id, 10));
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
	assert_false(request_is_kept(lease.id));
	st = status_at(ticket.resource);
	assert_int_equal(st->state, RECORD_COMPLETED);
	assert_true(st->replayable);
	doctor_finds_nothing();
}

/* The request of the last retry runs; it equals the first. */
STORE_TEST(a_released_key_that_was_not_accepted_can_be)
{
	struct store_lease lease = reserve("k");
	struct store_ticket ticket;

	settle(&lease, RECORD_FAILED_RETRYABLE);
	ticket = accept_job("k");
	assert_true(request_is_kept(lease.id));
	assert_int_equal(start_job().attempt, 2);
	assert_int_equal(strlen(ticket.resource), RECORD_RESOURCE_LEN);
}

/* --- age ----------------------------------------------------------------- */

static enum rc
give_up(int64_t id)
{
	struct store_outcome *s = store_outcome_new(store);

	assert_non_null(s);
	s->state = RECORD_COMPLETED;
	s->keep = true;
	s->response.status = 408;
	assert_ok(response_add(&s->response, "Content-Type", "text/plain"));
	return abandon(id, s);
}

STORE_TEST(past_its_retention_a_pending_job_is_given_up)
{
	struct store_reservation r = reservation("k");
	struct store_ticket ticket = accept_job("k");
	const struct record *st;
	struct record job, old;
	struct store_lease lease;

	assert_int_equal(store_job_abandoned(store, &job), RC_NOTFOUND);
	old = next_job();
	assert_int_equal(give_up(old.id), RC_LOST); /* not yet */
	pass_retention(NULL);
	/* no worker takes it, and expiry does not delete it */
	assert_string_equal(next_key(), "");
	assert_int_equal(store_job_start(store, &old, &r, &lease), RC_LOST);
	record_free(&old);
	assert_int_equal(expire(4), 0);
	assert_int_equal(decision_for("k"), DECIDE_BUSY);

	assert_ok(store_job_abandoned(store, &job));
	assert_string_equal(job.key, "k");
	assert_string_equal(job.resource, ticket.resource);
	assert_ok(give_up(job.id));
	assert_int_equal(give_up(job.id), RC_LOST);
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
	assert_false(request_is_kept(job.id));
	record_free(&job);
	assert_int_equal(store_job_abandoned(store, &job), RC_NOTFOUND);
	st = status_at(ticket.resource);
	assert_int_equal(st->state, RECORD_COMPLETED);
	assert_true(st->replayable && !st->queued);
	assert_retention("k", HOUR); /* its answer's */
	assert_int_equal(value_of(NULL, K_STATUS), 408);
}

/* --- the status resource, and news --------------------------------------- */

STORE_TEST(doctor_misses_the_request_of_what_waits)
{
	char text[1000];

	accept_job("k");
	delete_all(REQUESTS);
	assert_int_equal(doctor_tells("requests", NULL, text), '-');
	assert_non_null(strstr(text, "1 "));
}

/* --- waiting for work ---------------------------------------------------- */

static bool
news_within(int ms)
{
	struct pollfd p = { .fd = store_news(store), .events = POLLIN };
	uint64_t n;

	return poll(&p, 1, ms) == 1 && read(p.fd, &n, sizeof(n)) == sizeof(n);
}

static bool
news(void)
{
	return news_within(20000);
}

static bool
no_news(void)
{
	return !news_within(20);
}

STORE_TEST(who_waits_for_work_hears_of_it)
{
	struct store_reservation r = job_for("k");
	struct store_ticket ticket;
	struct store_lease lease;

	(void)news_within(0); /* of what the test's begin has done */
	assert_true(no_news());
	accept_job("k");
	assert_true(news());
	assert_true(no_news());
	assert_int_equal(accept_by(store, &r, QUEUE, &ticket), DECIDE_BUSY);
	r = job_for("other");
	assert_int_equal(accept_by(store, &r, 1, &ticket), DECIDE_RUN);
	assert_true(no_news()); /* neither was accepted */
	lease = start_job();
	assert_true(no_news());
	release_job(&lease, 0);
	assert_true(news());
	lease = start_job();
	settle(&lease, RECORD_COMPLETED);
	assert_true(no_news()); /* there is nothing left to do */
	/* unless a handler may have said something */
	lease = reserve("said");
	store_share_begin(store);
	store_share_end(store);
	settle(&lease, RECORD_COMPLETED);
	assert_true(news());
	store_wake(store);
	assert_true(news());
	assert_true(no_news());
}

/* --- workers that are lost ----------------------------------------------- */

/* A process that accepts k and takes it up, after so many attempts that were
 * lost before, is killed. */
static int64_t
lose_worker(int attempts)
{
	struct store_reservation r;
	struct lost lost;

	if (lost_fork(&lost, false)) {
		accept_job("k");
		r = lost_resumable(&lost, "k");
		assert_ok(start_next(&r, &lost.lease));
		add_to("k", K_ATTEMPT, attempts);
		lost_stay(&lost);
	}
	kill_and_wait(lost.owner);
	store = open_store();
	assert_int_equal(sweep(store), 1);
	return lost.lease.id;
}

DIR_TEST(lost_a_job_that_may_be_resumed_is_queued_again)
{
	static const struct {
		int attempts;
		int64_t least, most;
	} rows[] = { { 0, 0, 0 }, { 1, 1000, 1500 }, { 2, 2000, 3000 },
		{ DECIDE_REQUEUE_MAX - 2, 2400000, 3600000 } };
	int64_t id, wait;

	for (size_t i = 0; i < COUNT(rows); i++) {
		id = lose_worker(rows[i].attempts);
		assert_int_equal(state_of("k"), RECORD_FAILED_RETRYABLE);
		assert_true(request_is_kept(id));
		if (rows[i].most == 0)
			assert_int_equal(start_job().attempt, 2);
		else {
			wait = store_wall(store, value_of(NULL, K_QUEUED_AT)) -
			    value_of(NULL, K_UPDATED_AT);
			/* the two clocks are read one after the other */
			assert_in_range(
			    wait, rows[i].least - 500, rows[i].most + 5);
			/* the pause is not part of its retention */
			assert_int_equal(value_of("k", K_EXPIRES_AT) -
				value_of("k", K_QUEUED_AT),
			    HOUR);
		}
		store_close(store);
		store = NULL;
		empty_dir();
	}
}

DIR_TEST(lost_too_often_a_job_waits_for_a_request)
{
	(void)lose_worker(DECIDE_REQUEUE_MAX - 1);
	assert_int_equal(state_of("k"), RECORD_FAILED_RETRYABLE);
	assert_int_equal(count_with(K_QUEUED_AT), 0);
	assert_retention("k", HOUR);
}

/* --- trouble ------------------------------------------------------------- */

/* Why it is not accepted. */
static enum rc
refused(const char *key)
{
	struct store_reservation r = job_for(key);
	struct store_ticket ticket;
	struct record found;
	enum decision d;
	enum rc rc = store_accept(store, &r, QUEUE, &ticket, &d, &found);

	assert_null(found.fingerprint_spec);
	return rc;
}

/* As no reservation is made: see max_wal. */
STORE_TEST(while_the_log_is_too_long_nothing_is_begun)
{
	struct store_reservation r = reservation("k");
	struct store_options o = options();
	struct store_lease lease;
	sqlite3 *reader;
	enum rc rc;

	for (int i = 0; i < 10; i++)
		accept_job(textf("%d", i));
	o.max_wal = 1;
	reopen_with(o);
	reserve("first");
	reader = raw_open(file);
	raw_read(reader);
	assert_int_equal(refused("other"), RC_LIMIT);
	/* what comes at the moment when the log is looked at may slip in */
	do
		rc = start_next(&r, &lease);
	while (rc == RC_OK);
	assert_int_equal(rc, RC_LIMIT);
	sqlite3_close(reader);
	AWAIT((rc = start_next(&r, &lease)) != RC_LIMIT);
	assert_ok(rc);
}
