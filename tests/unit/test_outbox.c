/*
 * outbox: which effects are taken, and what becomes of them.
 *
 * Programs are those of the system; that they get what they must is for the
 * system tests.
 */
#include "config.h"

#include "conf_fixture.h"
#include "../power/vfs.h"
#include "outbox.h"
#include "run.h"
#include "store_fixture.h"

static struct outbox *box;
static struct conf *conf;
static atomic_bool stop;

static int
setup_box(void **state)
{
	if (setup_synced(state) != 0)
		return -1;
	atomic_store(&stop, false);
	conf = NULL;
	box = outbox_new(store, &stop);
	return box != NULL ? 0 : -1;
}

static int
teardown_box(void **state)
{
	outbox_free(box);
	conf_unref(conf);
	return teardown(state);
}

/* --- the words ---------------------------------------------------------- */

static void
configure(const char *text)
{
	struct conf *old = conf;

	conf = conf_from(text);
	assert_ok(outbox_topics(store, old, conf));
	conf_unref(old);
}

#define MAIL "[effect mail]\nprogram = /bin/true\n"
#define SMS  "[effect sms]\nprogram = /bin/true\n"

/* A handler of a key of its own puts one there. */
static void
emit(const char *topic)
{
	static int keys;
	struct store_lease lease = reserve(textf("k%d", keys++));

	assert_true(try_emit(&lease, topic, "x", 1));
}

/* Looks as the scheduler does. */
static enum rc
look(void **item)
{
	int64_t wake = INT64_MAX;

	return outbox_kind.next(box, conf, item, &wake);
}

/* Takes one of that topic. */
static struct effect *
take(const char *topic)
{
	struct effect *effect;
	void *item;

	assert_ok(look(&item));
	effect = item;
	assert_string_equal(effect->topic, topic);
	return effect;
}

static void
try_it(struct effect *effect)
{
	outbox_kind.run(box, conf, effect);
}

#define CASE(name) TEST_WITH(name, setup_box, teardown_box)

/* --- which effects are taken --------------------------------------------- */

CASE(a_topic_alone_may_have_all_threads)
{
	struct effect *e[OUTBOX_PROGRAMS];

	configure(MAIL);
	for (int i = 0; i < OUTBOX_PROGRAMS; i++)
		emit("mail");
	for (int i = 0; i < OUTBOX_PROGRAMS; i++)
		e[i] = take("mail");
	for (int i = 0; i < OUTBOX_PROGRAMS; i++)
		try_it(e[i]);
	assert_int_equal(count_effects(EFFECT_DELIVERED), OUTBOX_PROGRAMS);
}

CASE(topics_take_turns)
{
	char order[9] = "";
	void *e;

	configure(MAIL SMS);
	for (int i = 0; i < 4; i++)
		emit("mail");
	for (int i = 0; i < 4; i++)
		emit("sms");
	for (int i = 0; i < 8; i++) {
		assert_ok(look(&e));
		order[i] = ((struct effect *)e)->topic[0];
		try_it(e);
	}
	assert_string_equal(order, "msmsmsms");
}

/* --- a disk that fails -------------------------------------------------- */

static const struct vfs_fault sync_fails = {
	.call = VFS_SYNC, .nth = 1, .code = SQLITE_IOERR_FSYNC
};

CASE(a_try_that_cannot_be_made_durable_is_none)
{
	struct effect *e;
	void *item;

	configure(MAIL);
	emit("mail");
	vfs_break(&sync_fails);
	assert_int_equal(look(&item), RC_IO);
	e = take("mail");
	assert_int_equal(e->attempts, 1);
	try_it(e);
	assert_int_equal(count_effects(EFFECT_DELIVERED), 1);
}

CASE(an_end_that_cannot_be_recorded_is_recorded_later)
{
	struct effect *e;

	configure(MAIL);
	emit("mail");
	e = take("mail");
	vfs_break(&sync_fails);
	try_it(e);
	assert_true(vfs_struck());
	assert_int_equal(count_effects(EFFECT_DELIVERED), 1);
}

static int
begin_runs(void **state)
{
	return begin_group(state) == 0 && run_init() == RC_OK ? 0 : -1;
}

GROUP(begin_runs, NULL)
