/*
 * store on PostgreSQL: two transactions that meet.  Each of them sees the store
 * as it was before the other one's COMMIT, and what both leave must still be
 * right.
 *
 * A trigger holds the first one's COMMIT until the second one has ended, or
 * waits for the first one's locks.
 */
#include "config.h"

#include <stdatomic.h>

#include "store_fixture.h"
#include "postgres.h"

/* How long a state may take (ms). */

#define QUEUE 100

/* --- the words ------------------------------------------------------------ */

/* What a thread does to the store. */
struct side {
	enum rc (*act)(struct side *);
	struct effect *effect; /* or */
	int64_t id;
	enum rc rc;
	atomic_bool ended;
	pthread_t thread;
};

static void *
be_side(void *arg)
{
	struct side *side = arg;

	side->rc = side->act(side);
	atomic_store(&side->ended, true);
	return NULL;
}

static void
start(struct side *side)
{
	side->thread = start_thread(be_side, side);
}

static int64_t
waiting(void)
{
	return raw_number("SELECT count(*) FROM pg_locks WHERE NOT granted");
}

/* The COMMIT of a change of that table's rows waits for let_commit(). */
static void
hold_commit(enum rows rows, const char *when)
{
	rawf("CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ "
	     "BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$; "
	     "CREATE CONSTRAINT TRIGGER hold AFTER %s ON %s "
	     "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "
	     "hold(); SELECT pg_advisory_lock(1)",
	    when, row_tables[rows]);
}

static void
let_commit(void)
{
	raw("SELECT pg_advisory_unlock(1)");
}

/* Runs both: the second one begins when the first one's COMMIT is held. */
static void
meet(struct side *first, struct side *second)
{
	start(first);
	AWAIT(waiting() == 1);
	start(second);
	AWAIT(atomic_load(&second->ended) || waiting() > 1);
	let_commit();
	end_thread(first->thread);
	end_thread(second->thread);
	assert_ok(first->rc);
	assert_ok(second->rc);
}

/* --- what they do --------------------------------------------------------- */

static enum rc
deliver(struct side *side)
{
	const struct effect_end end = { .state = EFFECT_DELIVERED };

	return store_effect_end(store, side->effect, &end);
}

static enum rc
retry(struct side *side)
{
	return store_effect_retry(store, side->id);
}

static enum rc
drop(struct side *side)
{
	return store_effect_drop(store, side->id);
}

static enum rc
end_of_retention(struct side *side)
{
	(void)side;
	return expire(4) == 1 ? RC_OK : RC_NOTFOUND;
}

/* The key is used again, past its retention. */
static enum rc
use_again(struct side *side)
{
	(void)side;
	return decision_for("k") == DECIDE_RUN ? RC_OK : RC_EXISTS;
}

/* --- effects -------------------------------------------------------------- */

static void
emit(const struct store_lease *lease, int n)
{
	while (n-- > 0)
		assert_true(try_emit(lease, "mail", "payload", 7));
}

/* Begins the try of the effect that has the turn. */
static struct effect
begin(void)
{
	struct effect e;
	int64_t at;

	assert_ok(store_effect_next(store, "mail", &e, &at));
	assert_ok(store_effect_begin(store, &e));
	return e;
}

#define CASE(name) TEST_WITH(name, setup_sides, teardown)

static int setup_sides(void **);

CASE(a_retry_beside_the_last_delivery_is_due)
{
	const struct effect_end gives_up = { .state = EFFECT_DEAD_LETTER };
	struct store_lease lease = reserve("k");
	struct effect dead, last;
	struct side first = { .act = deliver, .effect = &last },
		    second = { .act = retry };

	emit(&lease, 2);
	dead = begin();
	assert_ok(store_effect_end(store, &dead, &gives_up));
	last = begin();
	second.id = dead.id;
	hold_commit(EFFECTS, "UPDATE");
	meet(&first, &second);
	assert_int_equal(turn(), dead.id);
	effect_free(&dead);
	effect_free(&last);
}

CASE(beside_a_drop_a_delivery_passes_the_turn_on)
{
	struct store_lease lease = reserve("k");
	struct effect e;
	struct side first = { .act = drop },
		    second = { .act = deliver, .effect = &e };

	emit(&lease, 3);
	e = begin();
	first.id = e.id + 1;
	hold_commit(EFFECTS, "DELETE");
	meet(&first, &second);
	assert_int_equal(turn(), e.id + 2);
	effect_free(&e);
}

/* A delivery beside the end of its key leaves no row. */
static void delivered_beside(enum rc (*end_of_key)(struct side *))
{
	struct store_lease lease = reserve("k");
	struct effect e;
	struct side first = { .act = deliver, .effect = &e },
		    second = { .act = end_of_key };

	emit(&lease, 1);
	e = begin();
	settle_for(&lease, RECORD_COMPLETED, 0);
	hold_commit(EFFECTS, "UPDATE");
	meet(&first, &second);
	assert_int_equal(count_of(EFFECTS), 0);
	effect_free(&e);
}

CASE(delivered_while_its_key_expires_an_effect_goes)
{
	delivered_beside(end_of_retention);
}

CASE(delivered_while_its_key_is_used_again_an_effect_goes)
{
	delivered_beside(use_again);
}

/* --- requests that are stored --------------------------------------------- */

static struct store_reservation
stored(void)
{
	struct store_reservation r = reservation("k");

	give_request(&r, "body", 4);
	r.max_kept = 1000;
	r.max_active = 10; /* so that it shares no transaction */
	r.resource = true;
	r.reconcile_delay = HOUR;
	return r;
}

static enum rc
accept_stored(struct side *side)
{
	struct store_reservation r = stored();
	struct store_ticket ticket;
	struct record found;
	enum decision d;
	enum rc rc;

	(void)side;
	rc = store_accept(store, &r, QUEUE, &ticket, &d, &found);
	record_free(&found);
	return rc == RC_OK && d != DECIDE_RUN ? RC_EXISTS : rc;
}

static enum rc
reserve_stored(struct side *side)
{
	struct store_reservation r = stored();

	(void)side;
	return decision_as(&r) == DECIDE_RUN ? RC_OK : RC_EXISTS;
}

CASE(of_a_key_that_was_just_queued_the_request_counts_once)
{
	struct side first = { .act = accept_stored },
		    second = { .act = reserve_stored };
	struct store_lease lease = reserve("k");

	settle(&lease, RECORD_FAILED_RETRYABLE);
	hold_commit(KEYS, "UPDATE");
	meet(&first, &second);
	assert_int_equal(count_of(REQUESTS), 1);
	assert_int_equal(kept_bytes(), 8);
}

/* --- all ------------------------------------------------------------------ */

/* The store has a connection for each side, and one for its keeper. */
static int
setup_sides(void **state)
{
	struct store_options o;

	if (setup_dir(state) != 0)
		return -1;
	o = options();
	o.workers = 3;
	store = open_with(o);
	return add_topics(1);
}

GROUP(setup_server, stop_servers)
