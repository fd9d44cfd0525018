/*
 * What the committer makes of a write's flags and results.
 */
#include "config.h"

#include "store_fixture.h"
#include "committer_impl.h"
#include "store_impl.h"

struct topic_write {
	struct write w;
	const char *topic;
	enum rc rc; /* what each run returns */
	int runs;
	enum rc done; /* what committer_do() returned */
	pthread_t thread;
};

/* Adds a topic in each run. */
static enum rc
topic_run(struct write *w, struct db *db, int64_t now)
{
	struct topic_write *t = (struct topic_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_TOPIC_ADD);
	char name[32];

	(void)now;
	snprintf(name, sizeof(name), "%s%d", t->topic, t->runs++);
	db_bindf(s, "s", name);
	assert_ok(db_step_done(s));
	return t->rc;
}

static void *
do_it(void *arg)
{
	struct topic_write *t = arg;

	t->done = committer_do(store->committer, &t->w);
	return NULL;
}

static unsigned
queued(void)
{
	struct committer *c = store->committer;
	unsigned n;

	lock_take(&c->lock);
	n = c->queue.n;
	lock_give(&c->lock);
	return n;
}

/* Runs the writes in one group: all are queued before the lock is free. */
static void
run_together(struct topic_write *t, unsigned n)
{
	sqlite3 *other = raw_open(file);

	raw_run(other, "BEGIN IMMEDIATE");
	for (unsigned i = 0; i < n; i++) {
		t[i].w.run = topic_run;
		t[i].thread = start_thread(do_it, &t[i]);
		AWAIT(queued() > i);
	}
	raw_run(other, "ROLLBACK");
	for (unsigned i = 0; i < n; i++)
		end_thread(t[i].thread);
	sqlite3_close(other);
}

STORE_TEST(lost_after_a_change_it_leaves_nothing_nor_hurts_others)
{
	struct topic_write t[3] = {
		{ .topic = "first" },
		{ .topic = "lost", .rc = RC_LOST },
		{ .topic = "last" },
	};

	run_together(t, COUNT(t));
	assert_ok(t[0].done);
	assert_int_equal(t[1].done, RC_LOST);
	assert_ok(t[2].done);
	assert_int_equal(topics_like("lost%"), 0);
	assert_int_equal(topics_like("first%"), 1);
	assert_int_equal(topics_like("last%"), 1);
	assert_true(store_health(store, (char[100]){ 0 }, 100));
}

STORE_TEST(failed_it_leaves_nothing_nor_hurts_others)
{
	struct topic_write t[2] = {
		{ .topic = "failed", .rc = RC_INVALID },
		{ .topic = "other" },
	};

	run_together(t, COUNT(t));
	assert_int_equal(t[0].done, RC_INVALID);
	assert_ok(t[1].done);
	assert_int_equal(topics_like("failed%"), 0);
	assert_int_equal(topics_like("other%"), 1);
}

static int
begin_group(void **state)
{
	(void)state;
	alarm(300);
	return 0;
}

GROUP(begin_group, NULL)
