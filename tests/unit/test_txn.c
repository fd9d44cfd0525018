/*
 * txn: on a real PostgreSQL server, whatever happens to the connection, each
 * transaction takes place once, or its caller hears that it did not, or that
 * nobody knows.
 */
#include "config.h"

#include <stdatomic.h>

#include "txn_fixture.h"

#define PATIENCE 3000 /* busy_timeout of most pools (ms) */

static int
setup_group(void **state)
{
	if (make_primary(state) != 0)
		return -1;
	sql("CREATE TABLE sale(n bigint)");
	return 0;
}

static int
setup(UNUSED void **state)
{
	sql("TRUNCATE once_session, sale");
	pool = open_pool(through, OWNER, PATIENCE, 1);
	return 0;
}

/* The same with another busy_timeout and so many connections. */
static void
open_again(int64_t busy_timeout, unsigned connections)
{
	txn_close(pool);
	pool = open_pool(through, OWNER, busy_timeout, connections);
}

/* --- bodies --------------------------------------------------------------- */

struct sale {
	int runs;
	int pid;                       /* of its server process */
	void (*before)(struct sale *); /* the statement */
	void (*after)(struct sale *);  /* it, and before the COMMIT */
	const char *cut;               /* with the first COMMIT: see proxy */
	enum rc rc;
	int64_t number;
};

/* Sells once, and may be disturbed. */
static enum rc
sell(struct pg *pg, void *arg)
{
	struct sale *s = arg;
	char text[80];
	enum rc rc;

	s->runs++;
	rc = pg_exec(pg, "SELECT pg_backend_pid()");
	if (rc == RC_OK)
		rc = pg_row(pg, "d", &s->pid);
	if (s->before != NULL)
		s->before(s);
	snprintf(text, sizeof(text), "INSERT INTO sale VALUES (%lld)",
	    (long long)s->number);
	if (rc == RC_OK)
		rc = pg_exec(pg, text);
	if (s->after != NULL)
		s->after(s);
	if (s->cut != NULL && s->runs == 1)
		(void)control("net cut_at %s", s->cut);
	return rc == RC_OK ? s->rc : rc;
}

static enum rc
count_sales(struct pg *pg, void *arg)
{
	enum rc rc = pg_exec(pg, "SELECT count(*) FROM sale");

	return rc == RC_OK ? pg_row(pg, "i", (int64_t *)arg) : rc;
}

static int64_t
sales(void)
{
	int64_t n = -1;

	assert_ok(txn_run(pool, TXN_LOOK, count_sales, &n));
	return n;
}

static struct txn_health
health(void)
{
	struct txn_health h;

	txn_health(pool, &h);
	return h;
}

/* Each transaction that took place has a number.  A lookup takes two, if it
 * finds that the transaction did not take place. */
static void
assert_numbers(long transactions)
{
	const long n = numbers();

	assert_true(n >= transactions);
	assert_int_equal((n - transactions) % 2, 0);
}

static void
settle_all(void)
{
	for (int i = 0; i < 20 && health().pending > 0; i++)
		txn_settle(pool);
	assert_int_equal(health().pending, 0);
}

/* --- what goes well ------------------------------------------------------- */

CASE(each_transaction_has_a_number)
{
	struct sale s = { 0 };

	for (int i = 0; i < 3; i++)
		assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
	assert_int_equal(s.runs, 3);
	assert_int_equal(sales(), 3);
	assert_int_equal(numbers(), 3);
	assert_ok(txn_run(pool, TXN_TWICE, sell, &s));
	assert_int_equal(sales(), 4);
	assert_int_equal(numbers(), 3);
	assert_int_equal(health().connections, 1);
}

CASE(what_a_body_refuses_is_rolled_back)
{
	struct sale s = { .rc = RC_LOST };

	assert_int_equal(txn_run(pool, TXN_WRITE, sell, &s), RC_LOST);
	assert_int_equal(s.runs, 1);
	assert_int_equal(sales(), 0);
	assert_int_equal(numbers(), 0);
}

static enum rc
count_twice(struct pg *pg, void *arg)
{
	int64_t *n = arg, later;
	enum rc rc;

	rc = count_sales(pg, n);
	sql("INSERT INTO sale VALUES (1)");
	if (rc == RC_OK)
		rc = count_sales(pg, &later);
	if (rc == RC_OK)
		assert_int_equal(later, *n);
	return rc;
}

static enum rc
pass_over(struct pg *pg, void *arg)
{
	++*(int *)arg;
	(void)pg_exec(pg, "INSERT INTO sale VALUES (1)");
	(void)pg_exec(pg, "INSERT INTO nowhere VALUES (1)");
	return RC_OK;
}

CASE(a_failure_that_a_body_passes_over_is_one)
{
	int runs = 0;

	assert_int_equal(txn_run(pool, TXN_WRITE, pass_over, &runs), RC_IO);
	assert_int_equal(runs, 1);
	assert_int_equal(sales(), 0);
	assert_int_equal(txn_run(pool, TXN_LOOK, pass_over, &runs), RC_IO);
}

CASE(a_read_sees_one_state)
{
	int64_t n;

	assert_ok(txn_run(pool, TXN_READ, count_twice, &n));
	assert_int_equal(n, 0);
	assert_ok(txn_run(pool, TXN_READ, count_sales, &n));
	assert_int_equal(n, 1);
}

/* --- connections that are lost -------------------------------------------- */

static void
terminate(struct sale *s)
{
	if (s->runs == 1)
		(void)control(
		    "primary sql SELECT pg_terminate_backend(%d, 10000)",
		    s->pid);
}

/* In mid-transaction, and when the COMMIT, or the answer to it, is lost. */
CASE(a_connection_that_is_lost_once_sells_once)
{
	static const struct {
		struct sale sale;
		int runs;
	} rows[] = {
		{ { .before = terminate }, 2 },
		{ { .after = terminate }, 2 },
		{ { .cut = "answer" }, 1 },
		{ { .cut = "question" }, 2 },
	};

	for (int i = 0; i < (int)COUNT(rows); i++) {
		struct sale s = rows[i].sale;
		const long before = numbers();

		assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
		assert_int_equal(s.runs, rows[i].runs);
		assert_int_equal(sales(), i + 1);
		assert_numbers(i + 1);
		/* What was committed is not done again. */
		if (rows[i].runs == 1)
			assert_int_equal(numbers(), before + 1);
		assert_int_equal(health().pending, 0);
	}
}

/* Waits for what pg_stat_activity shows of another session, and then does
 * something about it. */
struct watch {
	const char *until, *then;
	pthread_t thread;
};

static void *
watch(void *arg)
{
	struct watch *w = arg;

	AWAIT(number(w->until) != 0);
	(void)control("%s", w->then);
	return NULL;
}

/* The lookup waits for the transaction whose COMMIT is still on its way. */
CASE(a_commit_that_arrives_late)
{
	struct watch w = { .until = "SELECT count(*) FROM pg_stat_activity "
				    "WHERE wait_event_type = 'Lock'",
		.then = "net release" };
	struct sale s = { 0 };

	assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
	s.cut = "hold-question";
	s.runs = 0;
	(void)control("net cut_at none");
	w.thread = start_thread(watch, &w);
	assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
	end_thread(w.thread);
	assert_int_equal(s.runs, 1);
	assert_int_equal(sales(), 2);
}

/* The server ends a transaction whose client is silent, so the lookup finds
 * that it did not take place. */
CASE(a_commit_that_arrives_too_late)
{
	struct sale s = { .cut = "hold-question" };

	assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
	assert_int_equal(s.runs, 2);
	assert_int_equal(sales(), 1);
	(void)control("net release");
	assert_int_equal(sales(), 1);
}

static void
freeze(struct sale *s)
{
	(void)s;
	(void)control("primary freeze");
}

/* COMMIT is sent to a server that does not answer. */
CASE(a_server_that_freezes)
{
	struct sale s = { .after = freeze };
	int64_t begun, n;

	open_again(300, 1);
	assert_int_equal(txn_run(pool, TXN_WRITE, sell, &s), RC_PENDING);
	assert_int_equal(s.runs, 1);
	assert_int_equal(health().pending, 1);
	begun = clock_mono();
	assert_int_equal(txn_run(pool, TXN_LOOK, count_sales, &n), RC_TIMEOUT);
	assert_true(clock_mono() - begun < 10000);
	(void)control("primary thaw");
	settle_all();
	assert_numbers((long)sales());
	s.after = NULL;
	assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
}

CASE(no_server_is_an_error_within_the_patience)
{
	struct txn_pool *none;
	int64_t n, begun = clock_mono();

	none = open_pool("host=/nonexistent", 0, 300, 1);
	assert_int_equal(txn_run(none, TXN_LOOK, count_sales, &n), RC_IO);
	assert_true(clock_mono() - begun < 10000);
	txn_close(none);
}

static enum rc
end_the_session(struct pg *pg, void *arg)
{
	(void)arg;
	return pg_exec(pg, "SELECT pg_terminate_backend(pg_backend_pid())");
}

CASE(a_connection_that_is_lost_leaves_its_message)
{
	struct txn_pool *p = open_pool(through, 0, 300, 1);
	char message[512];

	assert_int_not_equal(
	    txn_run(p, TXN_LOOK, end_the_session, NULL), RC_OK);
	txn_message(p, message, sizeof(message));
	assert_string_not_equal(message, "");
	txn_close(p);
}

/* --- a standby ------------------------------------------------------------ */

/* COMMIT waits for a standby that is not there; meanwhile the function is
 * called for its session. */
static enum rc
sell_without_standby(struct sale *s, const char *function)
{
	char then[160];
	struct watch w = { .until = "SELECT count(*) FROM pg_stat_activity "
				    "WHERE wait_event = 'SyncRep'",
		.then = then };
	enum rc rc;

	snprintf(then, sizeof(then),
	    "primary sql SELECT %s(pid) FROM pg_stat_activity "
	    "WHERE wait_event = 'SyncRep'",
	    function);
	(void)control("primary synchronous ghost");
	w.thread = start_thread(watch, &w);
	rc = txn_run(pool, TXN_WRITE, sell, s);
	end_thread(w.thread);
	return rc;
}

static void
commit_is_interrupted(const char *function)
{
	struct sale s = { 0 };

	open_again(1000, 1);
	assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
	assert_int_equal(sell_without_standby(&s, function), RC_PENDING);
	assert_int_equal(s.runs, 2);
	assert_int_equal(health().pending, 1);
	/* The standby is there again: it has all that was committed. */
	(void)control("primary synchronous ");
	settle_all();
	assert_int_equal(sales(), 2);
	assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
	assert_int_equal(numbers(), 3);
}

/* COMMIT succeeds with a WARNING then. */
CASE(a_commit_that_only_the_primary_has)
{
	commit_is_interrupted("pg_cancel_backend");
}

CASE(a_backend_killed_in_commit)
{
	commit_is_interrupted("pg_terminate_backend");
}

/* The row counts only when a COMMIT that waited for the standby has confirmed
 * it, the second one included. */
CASE(a_row_of_a_slot_that_only_the_primary_has)
{
	struct sale s = { 0 };

	open_again(1000, 1);
	assert_int_not_equal(
	    sell_without_standby(&s, "pg_cancel_backend"), RC_OK);
	assert_int_equal(s.runs, 0);
	assert_int_equal(health().pending, 0);
	(void)control("primary synchronous ");
	/* A standby without the row is promoted. */
	sql("DELETE FROM once_session");
	assert_ok(txn_run(pool, TXN_WRITE, sell, &s));
	assert_false(health().went_back);
	assert_int_equal(sales(), 1);
}

/* --- others in the way ---------------------------------------------------- */

static enum rc
collide(struct pg *pg, void *arg)
{
	struct sale *s = arg;

	if (++s->runs <= (int)s->number)
		return pg_exec(
		    pg, "DO $$ BEGIN RAISE SQLSTATE '40001'; END $$");
	return pg_exec(pg, "INSERT INTO sale VALUES (1)");
}

CASE(a_collision_is_tried_again_with_a_bound)
{
	struct sale s = { .number = 3 }, never = { .number = 1000 };

	assert_ok(txn_run(pool, TXN_WRITE, collide, &s));
	assert_int_equal(s.runs, 4);
	assert_int_equal(txn_run(pool, TXN_WRITE, collide, &never), RC_BUSY);
	assert_true(never.runs > 1 && never.runs < 100);
	assert_int_equal(sales(), 1);
}

static enum rc
hold_and_try(struct pg *pg, void *arg)
{
	struct txn_pool *other = open_pool(primary, OWNER + 1, 200, 1);
	struct sale s = { 0 };
	enum rc rc;

	rc = pg_exec(pg, "LOCK TABLE sale");
	if (rc == RC_OK)
		*(enum rc *)arg = txn_run(other, TXN_WRITE, sell, &s);
	txn_close(other);
	return rc;
}

CASE(a_lock_that_stays_is_busy)
{
	enum rc rc = RC_OK;

	assert_ok(txn_run(pool, TXN_WRITE, hold_and_try, &rc));
	assert_int_equal(rc, RC_BUSY);
	assert_int_equal(sales(), 0);
}

/* --- threads -------------------------------------------------------------- */

enum { THREADS = 6, EACH = 25, CUTS = 20 };

struct seller {
	pthread_t thread;
	int64_t first;
	int sold, pending, failed;
};

static atomic_int selling, cuts;

static void *
sell_many(void *arg)
{
	struct seller *me = arg;
	struct sale s = { 0 };

	for (int i = 0; i < EACH || atomic_load(&cuts) < CUTS; i++) {
		s.number = me->first + i;
		switch (txn_run(pool, TXN_WRITE, sell, &s)) {
		case RC_OK:
			me->sold++;
			break;
		case RC_PENDING:
			me->pending++;
			break;
		default:
			me->failed++;
			break;
		}
	}
	atomic_fetch_sub(&selling, 1);
	return NULL;
}

/* Connections are cut all the time; nothing is sold twice or lost. */
CASE(connections_are_cut_at_random)
{
	struct seller seller[THREADS] = { 0 };
	int sold = 0, n;

	open_again(20000, 4);
	selling = THREADS;
	cuts = 0;
	for (int i = 0; i < THREADS; i++) {
		seller[i].first = i * INT64_C(1000000);
		seller[i].thread = start_thread(sell_many, &seller[i]);
	}
	while (atomic_load(&selling) > 0 && (n = cuts) < 3 * CUTS) {
		(void)number("SELECT count(*) FROM sale");
		(void)control("%s",
		    n % 3 == 0       ? "net cut"
			: n % 3 == 1 ? "net cut_at answer"
				     : "net cut_at question");
		cuts++;
	}
	(void)control("net cut_at none");
	for (int i = 0; i < THREADS; i++) {
		end_thread(seller[i].thread);
		assert_int_equal(seller[i].failed, 0);
		assert_int_equal(seller[i].pending, 0);
		sold += seller[i].sold;
	}
	assert_true(cuts >= CUTS);
	assert_true(sold >= THREADS * EACH);
	assert_int_equal(number("SELECT count(*) FROM sale"), sold);
	assert_int_equal(number("SELECT count(DISTINCT n) FROM sale"), sold);
	assert_numbers(sold);
	assert_true(health().connections <= 4);
}

/* --- the log -------------------------------------------------------------- */

static char log_name[32];

/* Opens a pool that writes the log into a file. */
static struct txn_pool *
open_logged(void)
{
	int fd;

	snprintf(log_name, sizeof(log_name), "/tmp/test_txn.XXXXXX");
	fd = mkstemp(log_name);
	assert_true(fd >= 0);
	close(fd);
	log_set_level(LOG_INFO);
	assert_int_equal(log_open(log_name), 0);
	return open_pool(primary, OWNER, 300, 1);
}

/* Closes the log, and returns what is in it. */
static const char *
read_log(void)
{
	static char text[4096];
	const int fd = open(log_name, O_RDONLY);
	ssize_t n;

	log_set_level(LOG_ERROR + 1);
	assert_int_equal(log_open("stderr"), 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	unlink(log_name);
	return text;
}

static int
times(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

CASE(a_commit_that_fails_again_and_again_is_logged_once)
{
	struct sale s = { 0 };
	struct txn_pool *p;
	const char *text;

	sql("CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS "
	    "$$ BEGIN RAISE 'no disk' USING ERRCODE = '08006'; END $$");
	p = open_logged();
	for (int i = 0; i < 2; i++) {
		assert_ok(txn_run(p, TXN_WRITE, sell, &s));
		sql("CREATE CONSTRAINT TRIGGER fails AFTER UPDATE ON "
		    "once_session DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
		    "EXECUTE FUNCTION fails()");
		/* The COMMIT, and those of the lookups of its outcome. */
		for (int j = 0; j < 2; j++)
			assert_int_not_equal(
			    txn_run(p, TXN_WRITE, sell, &s), RC_OK);
		sql("DROP TRIGGER fails ON once_session");
		assert_ok(txn_run(p, TXN_WRITE, sell, &s));
	}
	txn_close(p);
	text = read_log();
	assert_int_equal(times(text, "event=store-error"), 2);
	assert_int_equal(times(text, "doing=COMMIT message=\"no disk\""), 2);
	assert_int_equal(times(text, "event=store-commits"), 2);
	assert_int_equal(times(text, "event="), 4);
}

GROUP(setup_group, stop_servers)
