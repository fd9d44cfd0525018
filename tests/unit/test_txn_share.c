/*
 * txn_share: operations of several threads take place together, and each of
 * them once or not at all, on a real PostgreSQL server.
 */
#include "config.h"

#include <sched.h>

#include "txn_fixture.h"
#include "txn_impl.h"

#define PATIENCE 20000 /* busy_timeout (ms) */

static int
setup_group(void **state)
{
	if (make_primary(state) != 0)
		return -1;
	sql("CREATE TABLE once_topic(name bytea PRIMARY KEY "
	    "CHECK(octet_length(name) > 0))");
	sql("CREATE TABLE once_meta(id bigint, time_limit bigint)");
	sql("INSERT INTO once_meta VALUES (1, 1)");
	return 0;
}

static int
setup(UNUSED void **state)
{
	sql("TRUNCATE once_session, once_topic");
	pool = open_pool(through, OWNER, PATIENCE, 3);
	pool->writes.most = 1; /* so that a second operation waits */
	return 0;
}

/* --- an operation: it inserts a name -------------------------------------- */

struct name {
	const char *text; /* "" violates a constraint */
	bool stops;       /* before it is sent, until go_on */
	bool asks;        /* whether there is any name, and then inserts one */
	struct txn_op op;
	enum txn_shared how;
	enum rc rc;
	int sent, changed;
	enum rc any;
	struct txn_group common;
	pthread_t thread;
};

static sem_t go_on;

static void
ask_name(struct pg *pg, void *arg)
{
	(void)arg;
	pg_send(pg, PG_QUERY_TOPIC_ANY, "");
}

static void
send_name(struct pg *pg, void *arg, struct txn_group *common)
{
	struct name *n = arg;

	if (n->asks) {
		n->any = pg_one(pg, "-");
		n->common = *common;
	}
	n->sent++;
	if (n->stops)
		sem_wait(&go_on);
	pg_send(pg, PG_QUERY_TOPIC_ADD, "s", n->text);
}

static enum rc
read_name(struct pg *pg, void *arg)
{
	return pg_update(pg, &((struct name *)arg)->changed);
}

static enum rc
name_alone(struct pg *pg, void *arg)
{
	send_name(pg, arg, NULL);
	return read_name(pg, arg);
}

static void
share(struct name *n)
{
	n->op.ask = n->asks ? ask_name : NULL;
	n->op.send = send_name;
	n->op.read = read_name;
	n->op.arg = n;
	n->rc = txn_share(pool, TXN_WRITE, &n->op, &n->how);
}

static void *
share_thread(void *arg)
{
	share(arg);
	return NULL;
}

static void
start(struct name *n)
{
	n->thread = start_thread(share_thread, n);
}

static void
wait_for(long (*count)(void), long wanted)
{
	AWAIT(count() == wanted);
}

static long
count_sent(void)
{
	long n;

	lock_take(&pool->lock);
	n = pool->writes.groups;
	lock_give(&pool->lock);
	return n;
}

static long
count_waiting(void)
{
	long n = 0;

	lock_take(&pool->lock);
	for (struct txn_op *op = pool->writes.first; op != NULL; op = op->next)
		n++;
	lock_give(&pool->lock);
	return n;
}

/* The first operation is a group, and the others are the next one. */
static void
share_together(struct name *first, struct name *others, int n)
{
	(void)control("net freeze");
	start(first);
	wait_for(count_sent, pool->writes.most);
	for (int i = 0; i < n; i++) {
		start(&others[i]);
		wait_for(count_waiting, i + 1);
	}
	(void)control("net thaw");
	end_thread(first->thread);
	for (int i = 0; i < n; i++)
		end_thread(others[i].thread);
}

static long
names(void)
{
	return number("SELECT count(*) FROM once_topic");
}

/* --- cases ---------------------------------------------------------------- */

CASE(those_that_wait_share_a_transaction)
{
	struct name first = { .text = "first" };
	struct name other[] = { { .text = "a" }, { .text = "b" },
		{ .text = "a" }, { .text = "c" } };

	share_together(&first, other, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(other[i].how, TXN_SHARED_DONE);
		assert_ok(other[i].rc);
		assert_int_equal(other[i].changed, i != 2);
	}
	assert_int_equal(names(), 4);
	assert_int_equal(numbers(), 2);
}

/* Whatever is asked is answered before anything is written. */
CASE(those_that_ask_know_the_answer_before_they_go_on)
{
	struct name first = { .text = "first" };
	struct name other[] = { { .text = "a", .asks = true }, { .text = "b" },
		{ .text = "c", .asks = true } };

	share_together(&first, other, 3);
	sql("TRUNCATE once_topic");
	first.asks = true;
	share(&first);
	assert_int_equal(first.any, RC_NOTFOUND);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(other[i].how, TXN_SHARED_DONE);
		assert_ok(other[i].rc);
		assert_int_equal(other[i].changed, 1);
		assert_ok(other[i].any);
		assert_int_equal(other[i].common.now, other[i].asks);
		assert_int_equal(other[i].common.clock > 1, other[i].asks);
	}
	assert_int_equal(numbers(), 3);
}

CASE(one_that_fails_does_not_take_the_others_along)
{
	struct name first = { .text = "first" };
	struct name other[] = { { .text = "a" }, { .text = "" },
		{ .text = "b" } };
	enum rc rc;

	share_together(&first, other, 3);
	assert_int_equal(first.how, TXN_SHARED_DONE);
	assert_int_equal(names(), 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(other[i].how, TXN_SHARED_ALONE);
		rc = txn_run(pool, TXN_WRITE, name_alone, &other[i]);
		assert_int_equal(rc, i == 1 ? RC_CORRUPT : RC_OK);
	}
	assert_int_equal(names(), 3);
}

static long
servers_of_clients(void)
{
	return number("SELECT count(*) FROM pg_stat_activity WHERE "
		      "backend_type = 'client backend' "
		      "AND pid <> pg_backend_pid()");
}

/* All of it, BEGIN included, reaches the server when the client has found that
 * it did not take place: then it must not take place any more. */
CASE(a_group_that_arrives_too_late)
{
	struct name first = { .text = "first" }, late = { .text = "late" };

	share(&first);
	(void)control("net cut_at hold-question");
	share(&late);
	assert_int_equal(late.how, TXN_SHARED_ALONE);
	assert_int_equal(servers_of_clients(), 2);
	(void)control("net release");
	/* The server answers, finds nobody, and ends. */
	wait_for(servers_of_clients, 1);
	assert_int_equal(names(), 1);
	share(&first);
	assert_int_equal(first.how, TXN_SHARED_DONE);
	assert_int_equal(names(), 1);
}

static enum rc
hold_name(struct pg *pg, void *arg)
{
	struct name held = { .text = "held" };
	enum rc rc;

	rc = name_alone(pg, &held);
	if (rc == RC_OK)
		share(arg);
	return rc;
}

/* A lock that another transaction holds for long holds no group up. */
CASE(a_group_waits_for_a_lock_only_shortly)
{
	struct txn_pool *other = open_pool(primary, OWNER + 1, PATIENCE, 3);
	struct name n = { .text = "held" };

	assert_ok(txn_run(other, TXN_WRITE, hold_name, &n));
	assert_int_equal(n.how, TXN_SHARED_ALONE);
	share(&n);
	assert_int_equal(n.how, TXN_SHARED_DONE);
	assert_int_equal(n.changed, 0);
	txn_close(other);
}

/* Of few operations, as if the connection of their group were dead. */
CASE(a_group_that_goes_nowhere_holds_no_other_up)
{
	struct name stuck = { .text = "stuck", .stops = true };
	struct name other[] = { { .text = "a" }, { .text = "b" } };

	pool->writes.most = 3;
	sem_init(&go_on, 0, 0);
	start(&stuck);
	wait_for(count_sent, 1);
	for (int i = 0; i < 2; i++)
		start(&other[i]);
	wait_for(names, 2);
	sem_post(&go_on);
	for (int i = 0; i < 2; i++)
		end_thread(other[i].thread);
	end_thread(stuck.thread);
	assert_int_equal(names(), 3);
	assert_int_equal(count_waiting(), 0);
	assert_int_equal(pool->writes.waiting, 0);
	assert_int_equal(count_sent(), 0);
	sem_destroy(&go_on);
}

/* One after another, and no answer comes meanwhile. */
CASE(clients_of_a_slow_network_do_not_wait_for_one_another)
{
	struct txn_pool *other = pool;
	struct name n[8];
	char text[8][8];

	pool = open_pool(through, OWNER + 2, PATIENCE, 3);
	n[0] = (struct name){ .text = "first" };
	share(&n[0]);
	(void)control("net freeze");
	for (int i = 0; i < 8; i++) {
		snprintf(text[i], sizeof(text[i]), "%d", i);
		n[i] = (struct name){ .text = text[i] };
		start(&n[i]);
		wait_for(count_sent, i + 1);
	}
	(void)control("net thaw");
	for (int i = 0; i < 8; i++)
		end_thread(n[i].thread);
	assert_int_equal(names(), 9);
	txn_close(pool);
	pool = other;
}

/* The first group takes so long; after that none waits for another to end. */
CASE(after_a_group_that_took_long_no_operation_waits)
{
	struct name n[] = { { .text = "long", .stops = true }, { .text = "a" },
		{ .text = "b" }, { .text = "c" } };
	int64_t until;

	pool->writes.most = 3;
	sem_init(&go_on, 0, 0);
	start(&n[0]);
	wait_for(count_sent, 1);
	until = clock_mono() + 50;
	while (clock_mono() < until)
		(void)sched_yield();
	sem_post(&go_on);
	end_thread(n[0].thread);
	(void)control("net freeze");
	for (int i = 1; i < 4; i++) {
		start(&n[i]);
		while (count_sent() < i)
			assert_int_equal(count_waiting(), 0);
	}
	(void)control("net thaw");
	for (int i = 1; i < 4; i++)
		end_thread(n[i].thread);
	assert_int_equal(names(), 4);
	sem_destroy(&go_on);
}

/* --- many threads --------------------------------------------------------- */

enum { THREADS = 12, EACH = 40 };

static void *
share_many(void *arg)
{
	struct name n;
	char text[40];

	for (int i = 0; i < EACH; i++) {
		n = (struct name){ .text = text };
		snprintf(text, sizeof(text), "%d-%d", *(int *)arg, i);
		share(&n);
		assert_int_equal(n.how, TXN_SHARED_DONE);
		assert_int_equal(n.changed, 1);
	}
	return NULL;
}

CASE(many_threads_share)
{
	pthread_t thread[THREADS];
	int of[THREADS];

	pool->writes.most = 2;
	for (int i = 0; i < THREADS; i++) {
		of[i] = i;
		thread[i] = start_thread(share_many, &of[i]);
	}
	for (int i = 0; i < THREADS; i++)
		end_thread(thread[i]);
	assert_int_equal(names(), THREADS * EACH);
	assert_int_equal(count_waiting(), 0);
	assert_int_equal(pool->writes.groups, 0);
	/* The slots are free. */
	for (int i = 0; i < pool->nslots; i++)
		assert_false(pool->slot[i].taken);
}

GROUP(setup_group, stop_servers)
