/*
 * store, the outbox: what handlers put there is tried in order for each key,
 * by one process at a time, again after a failure, and never lost.
 *
 * Handlers are a plain connection that writes through the view.
 */
#include "config.h"

#include <inttypes.h>

#include "conf_fixture.h"
#include "metrics.h"
#include "store_fixture.h"
#include "store_operator.h"

#define UUID_PATTERN                                                  \
	"[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]"    \
	"[0-9a-f]-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]-4[0-9a-f][0-9a-f]" \
	"[0-9a-f]-[89ab][0-9a-f][0-9a-f][0-9a-f]-????????????"

/* --- the words ---------------------------------------------------------- */

static void
emit(const struct store_lease *lease, const char *topic)
{
	assert_true(try_emit(lease, topic, "payload", 7));
}

/* What is next of a topic; RC_NOTFOUND also if it is not due. */
static enum rc
next_in(struct store *s, const char *topic, struct effect *e)
{
	int64_t at;
	enum rc rc;

	rc = store_effect_next(s, topic, e, &at);
	if (rc != RC_OK || at <= store_now(s))
		return rc;
	effect_free(e);
	return RC_NOTFOUND;
}

static bool
nothing_is_due(const char *topic)
{
	struct effect e;

	if (next_in(store, topic, &e) == RC_NOTFOUND)
		return true;
	effect_free(&e);
	return false;
}

static struct effect
begin_in(struct store *s, const char *topic)
{
	struct effect e;

	assert_int_equal(next_in(s, topic, &e), RC_OK);
	assert_int_equal(store_effect_begin(s, &e), RC_OK);
	return e;
}

static struct effect
begin(const char *topic)
{
	return begin_in(store, topic);
}

static enum rc
try_end(struct store *s, const struct effect *e, enum effect_state state,
    int64_t after)
{
	struct effect_end end;

	memset(&end, 0, sizeof(end));
	end.state = state;
	end.after = after;
	if (state == EFFECT_DELIVERED) {
		end.reference = "ref";
		end.reference_len = 3;
	} else
		snprintf(end.last_error, sizeof(end.last_error), "no luck");
	return store_effect_end(s, e, &end);
}

/* Ends the try, and frees it. */
static void
end(struct effect *e, enum effect_state state)
{
	assert_int_equal(
	    try_end(store, e, state, state == EFFECT_PENDING ? HOUR : 0),
	    RC_OK);
	effect_free(e);
}

/* A new one of that topic is due, tried, and ends so; its number. */
static int64_t
goes(const char *topic, enum effect_state state)
{
	struct effect e = begin(topic);
	int64_t id = e.id;

	end(&e, state);
	return id;
}

/* The row of that number, or false. */
static bool
row_of(int64_t id, struct effect *row)
{
	return store_browse_effect(store, id, row) == RC_OK;
}

static enum effect_state
effect_state(int64_t id)
{
	struct effect row;
	enum effect_state state = EFFECT_NONE;

	if (row_of(id, &row)) {
		state = row.state;
		effect_free(&row);
	}
	return state;
}

/* Of each key that has pending ones, exactly one has the turn; and what has a
 * payload needs one. */
static void
check_store(void)
{
	assert_int_equal(
	    raw_number("SELECT count(*) FROM once_effect e WHERE state = "
		       "'pending' AND 1 <> (SELECT count(*) FROM once_effect "
		       "f WHERE f.key_id = e.key_id AND f.state = 'pending' "
		       "AND (f.next_at IS NOT NULL OR f.owner IS NOT NULL))"),
	    0);
	assert_int_equal(
	    raw_number("SELECT count(*) FROM once_effect WHERE state <> "
		       "'pending' AND (next_at IS NOT NULL OR owner IS NOT "
		       "NULL)"),
	    0);
	if (is_postgresql())
		return; /* a constraint says the rest */
	assert_int_equal(
	    raw_number("SELECT count(*) FROM once_effect e WHERE (state = "
		       "'delivered') <> (payload IS NULL AND NOT EXISTS "
		       "(SELECT 1 FROM once_payload WHERE effect_id = e.id))"),
	    0);
	assert_int_equal(
	    raw_number("SELECT count(*) FROM once_payload p WHERE NOT EXISTS "
		       "(SELECT 1 FROM once_effect e WHERE e.id = effect_id "
		       "AND e.payload IS NULL)"),
	    0);
}

/* Payloads that are not in the rows of their effects. */
static int64_t
apart(void)
{
	return is_postgresql()
	    ? 0
	    : raw_number("SELECT count(*) FROM once_payload");
}

/* No effect is left, and the next number is 1. */
static void
begin_anew(void)
{
	raw(is_postgresql() ? "DELETE FROM once_effect; "
			      "ALTER SEQUENCE once_effect_id RESTART"
			    : "DELETE FROM once_effect; "
			      "DELETE FROM sqlite_sequence");
}

/* --- one effect --------------------------------------------------------- */

TOPICS_TEST(an_effect_is_due_at_once_and_has_its_key)
{
	struct store_lease lease = reserve("k");
	struct effect e;
	int64_t at;

	assert_int_equal(
	    store_effect_next(store, "mail", &e, &at), RC_NOTFOUND);
	emit(&lease, "mail");
	assert_true(nothing_is_due("sms"));
	assert_int_equal(store_effect_next(store, "mail", &e, &at), RC_OK);
	assert_true(at <= store_now(store) + SKEW);
	assert_int_equal(e.key_id, lease.id);
	assert_int_equal(e.attempts, 0);
	assert_string_equal(e.topic, "mail");
	assert_string_equal(e.scope, "alice");
	assert_string_equal(e.path, "/payments");
	assert_string_equal(e.key, "k");
	assert_int_equal(raw_number(is_postgresql()
				 ? "SELECT count(*) FROM once_effect WHERE "
				   "effect_key::text ~ '-4[0-9a-f]{3}-[89ab]'"
				 : "SELECT count(*) FROM once_effect WHERE "
				   "effect_key GLOB '" UUID_PATTERN "'"),
	    1);
	assert_int_equal(strlen(e.effect_key), 36);
	effect_free(&e);
	check_store();
}

TOPICS_TEST(a_try_counts_and_has_one_owner)
{
	struct store_lease lease = reserve("k");
	struct effect e, same;
	struct effect row;

	emit(&lease, "mail");
	assert_int_equal(next_in(store, "mail", &same), RC_OK);
	e = begin("mail");
	assert_int_equal(e.attempts, 1);
	assert_true(nothing_is_due("mail"));
	assert_int_equal(store_effect_begin(store, &same), RC_LOST);
	assert_int_equal(same.attempts, 0);
	assert_true(row_of(e.id, &row));
	assert_int_equal(row.attempts, 1);
	assert_int_equal(row.next_at, 0);
	assert_true(row.owner != 0 && !store_owner_is_dead(store, row.owner));
	effect_free(&row);
	check_store();
	end(&e, EFFECT_DELIVERED);
	assert_int_equal(store_effect_begin(store, &same), RC_LOST);
	effect_free(&same);
}

TOPICS_TEST(a_delivered_one_keeps_its_reference_and_no_payload)
{
	static const char bytes[] = "a\0b\xff\n";
	struct effect_end how = { .state = EFFECT_DELIVERED,
		.reference = bytes,
		.reference_len = 5 };
	struct store_lease lease = reserve("k");
	struct effect row;
	struct effect e;

	emit(&lease, "mail");
	e = begin("mail");
	assert_int_equal(try_end(store, &e, EFFECT_PENDING, 0), RC_OK);
	effect_free(&e);
	e = begin("mail");
	assert_int_equal(store_effect_end(store, &e, &how), RC_OK);
	assert_true(row_of(e.id, &row));
	assert_int_equal(row.state, EFFECT_DELIVERED);
	assert_int_equal(row.attempts, 2);
	assert_int_equal(row.reference.len, 5);
	assert_memory_equal(row.reference.data, bytes, 6);
	assert_null(row.last_error);
	assert_int_equal(row.next_at, 0);
	assert_string_equal(row.effect_key, e.effect_key);
	assert_int_equal(row.owner, 0);
	effect_free(&row);
	effect_free(&e);
	assert_true(nothing_is_due("mail"));
	check_store();
}

TOPICS_TEST(a_failed_try_is_put_off)
{
	struct store_lease lease = reserve("k");
	struct effect row;
	struct effect e, again;
	int64_t at;

	emit(&lease, "mail");
	e = begin("mail");
	assert_int_equal(try_end(store, &e, EFFECT_PENDING, HOUR), RC_OK);
	assert_true(nothing_is_due("mail"));
	assert_int_equal(store_effect_next(store, "mail", &again, &at), RC_OK);
	assert_in_range(at - store_now(store), HOUR - 60000, HOUR + SKEW);
	assert_int_equal(again.attempts, 1);
	assert_string_equal(again.effect_key, e.effect_key);
	/* No process begins it before its time. */
	assert_int_equal(store_effect_begin(store, &again), RC_LOST);
	assert_true(row_of(e.id, &row));
	assert_string_equal(row.last_error, "no luck");
	assert_in_range(
	    row.next_at - store_now(store), HOUR - 60000, HOUR + SKEW);
	assert_int_equal(row.reference.len, 0);
	effect_free(&row);
	effect_free(&e);
	effect_free(&again);
	check_store();
}

/* The end of a try changes nothing if the try is over, or another one was begun
 * since. */
TOPICS_TEST(an_end_names_its_try)
{
	static const enum effect_state states[] = {
		EFFECT_PENDING,
		EFFECT_DELIVERED,
		EFFECT_DEAD_LETTER,
	};
	struct store_lease lease = reserve("k");
	struct store *other = open_store();
	struct effect e, taken, third;
	size_t i;

	emit(&lease, "mail");
	e = begin("mail");
	assert_int_equal(try_end(other, &e, EFFECT_DELIVERED, 0), RC_LOST);
	assert_int_equal(try_end(store, &e, EFFECT_PENDING, 0), RC_OK);
	taken = begin_in(other, "mail");
	assert_int_equal(taken.attempts, 2);
	for (i = 0; i < COUNT(states); i++) {
		assert_int_equal(try_end(store, &e, states[i], 0), RC_LOST);
		assert_int_equal(try_end(store, &taken, states[i], 0), RC_LOST);
	}
	assert_int_equal(try_end(other, &taken, EFFECT_PENDING, 0), RC_OK);
	assert_int_equal(try_end(other, &taken, EFFECT_PENDING, 0), RC_LOST);
	/* Nor an earlier one of the same process. */
	third = begin("mail");
	for (i = 0; i < COUNT(states); i++)
		assert_int_equal(try_end(store, &e, states[i], 0), RC_LOST);
	end(&third, EFFECT_DELIVERED);
	effect_free(&e);
	effect_free(&taken);
	store_close(other);
	check_store();
}

static bool
payload_is(const struct effect *e, const unsigned char *bytes, size_t n)
{
	struct spool *payload;
	const void *p = NULL;
	enum rc rc = RC_OK;
	bool same;

	assert_int_equal(store_effect_payload(store, e, &payload), RC_OK);
	if (payload == NULL)
		return n == 0;
	p = spool_bytes(payload, &rc);
	same = rc == RC_OK && spool_length(payload) == n &&
	    memcmp(p, bytes, n) == 0;
	spool_free(payload);
	return same;
}

TOPICS_TEST(payloads_of_all_sizes)
{
	static const int lengths[] = { 0, 1, 2047, 2048, 2049, 70000, 1 << 20 };
	struct store_lease lease = reserve("k");
	struct effect e;
	struct spool *payload;
	unsigned char *bytes;
	size_t i;
	int j;

	assert_non_null(bytes = malloc(1 << 20));
	for (j = 0; j < 1 << 20; j++)
		bytes[j] = byte_at((size_t)j);
	for (i = 0; i < COUNT(lengths); i++)
		assert_true(try_emit(&lease, "mail", bytes, lengths[i]));
	assert_int_equal(apart(), is_postgresql() ? 0 : 3);
	check_store();
	for (i = 0; i < COUNT(lengths); i++) {
		e = begin("mail");
		if (!payload_is(&e, bytes, (size_t)lengths[i]))
			fail_msg("%d bytes", lengths[i]);
		assert_int_equal(
		    try_end(store, &e, EFFECT_DELIVERED, 0), RC_OK);
		/* It is gone: that is no empty one. */
		assert_int_equal(
		    store_effect_payload(store, &e, &payload), RC_CORRUPT);
		effect_free(&e);
		check_store();
	}
	assert_int_equal(apart(), 0);
	free(bytes);
}

/* --- processes ---------------------------------------------------------- */

TOPICS_TEST(what_a_dead_process_tried_is_due_again)
{
	struct store_lease lease = reserve("k");
	struct store *other = open_store();
	struct effect e, again;
	struct effect row;

	emit(&lease, "mail");
	emit(&lease, "mail");
	e = begin_in(other, "mail");
	assert_int_equal(sweep(store), 0);
	assert_true(nothing_is_due("mail"));
	store_close(other);
	assert_true(row_of(e.id, &row));
	assert_true(store_owner_is_dead(store, row.owner));
	effect_free(&row);
	assert_int_equal(sweep(store), 0); /* no key has changed */
	check_store();
	again = begin("mail");
	assert_int_equal(again.id, e.id);
	assert_int_equal(again.attempts, 2);
	assert_string_equal(again.effect_key, e.effect_key);
	end(&again, EFFECT_DELIVERED);
	effect_free(&e);
}

/* --- with its key ------------------------------------------------------- */

enum leaves { BY_AGE, TO_MARKER, FORGOTTEN, USED_AGAIN };

static void
key_goes(const struct store_lease *lease, enum leaves how)
{
	settle_for(lease, RECORD_COMPLETED, how == FORGOTTEN ? HOUR : 0);
	switch (how) {
	case BY_AGE:
	case TO_MARKER:
		assert_int_equal(expire(4), 1);
		break;
	case FORGOTTEN:
		assert_int_equal(
		    store_forget(store, lease->id, RECORD_NONE), RC_OK);
		break;
	case USED_AGAIN:
		reserve("k");
		break;
	}
}

TOPICS_TEST(delivered_ones_go_with_their_key_and_pending_ones_stay)
{
	struct store_reservation r = reservation("k");
	struct effect e;
	struct store_lease lease;
	int how;

	for (how = BY_AGE; how <= USED_AGAIN; how++) {
		raw("DELETE FROM once_key");
		begin_anew();
		r.on_expired =
		    how == TO_MARKER ? CONF_EXPIRED_GONE : CONF_EXPIRED_RUN;
		r.expired_retention = HOUR;
		lease = reserve_as(&r);
		emit(&lease, "mail");
		emit(&lease, "mail");
		emit(&lease, "mail");
		emit(&lease, "sms");
		goes("mail", EFFECT_DELIVERED);
		goes("mail", EFFECT_DEAD_LETTER);
		e = begin("mail");
		key_goes(&lease, (enum leaves)how);
		assert_int_equal(effect_state(1), EFFECT_NONE);
		assert_int_equal(effect_state(2), EFFECT_DEAD_LETTER);
		assert_int_equal(effect_state(3), EFFECT_PENDING);
		end(&e, EFFECT_DELIVERED);
		/* The key is gone, so its outcome is not needed. */
		assert_int_equal(effect_state(3), EFFECT_NONE);
		assert_int_equal(goes("sms", EFFECT_DELIVERED), 4);
		assert_int_equal(effect_state(4), EFFECT_NONE);
		check_store();
	}
}

TOPICS_TEST(keys_with_many_effects_are_reaped_a_few_at_a_time)
{
	struct store_change changes[STORE_EXPIRE_MAX];
	struct store_lease lease;
	int i, n, sum = 0, rounds = 0;
	char key[8];

	for (i = 0; i < 4; i++) {
		snprintf(key, sizeof(key), "%d", i);
		lease = reserve(key);
		settle_for(&lease, RECORD_COMPLETED, 0);
	}
	raw(is_postgresql()
		? "INSERT INTO once_effect(key_id, effect_key, scope, path, "
		  "key, topic, state, created_at, updated_at) "
		  "SELECT k.id, gen_random_uuid(), '', '', '', 'mail', "
		  "'delivered', 0, 0 FROM once_key k, generate_series(1, 900)"
		: "INSERT INTO once_effect(key_id, effect_key, scope, path, "
		  "key, topic, state, created_at, updated_at) "
		  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
		  "FROM n WHERE i < 900) SELECT k.id, '', '', '', '', 'mail', "
		  "'delivered', 0, 0 FROM once_key k, n");
	do {
		assert_int_equal(
		    store_expire(store, STORE_EXPIRE_MAX, changes, &n), RC_OK);
		store_changes_free(changes, n);
		sum += n;
		rounds += n > 0;
	} while (n > 0);
	assert_int_equal(sum, 4);
	assert_int_equal(rounds, 2);
	assert_int_equal(raw_number("SELECT count(*) FROM once_effect"), 0);
}

/* --- operators ---------------------------------------------------------- */

static int
listed(const struct store_effect_filter *filter)
{
	struct effect row;
	struct store_cursor *o;
	int64_t last = 0;
	enum rc rc;
	int n = 0;

	assert_int_equal(store_outbox_list(store, filter, &o), RC_OK);
	while ((rc = store_outbox_next(o, &row)) == RC_OK) {
		assert_true(row.id > last);
		last = row.id;
		effect_free(&row);
		n++;
	}
	assert_int_equal(rc, RC_NOTFOUND);
	store_list_free(o);
	return n;
}

TOPICS_TEST(lists_are_filtered_and_as_long_as_they_are)
{
	struct store_lease lease = reserve("k"), other;
	struct store_reservation r = reservation("other");
	int64_t before;
	int i;

	r.identity.scope = "bob";
	r.identity.path = "/orders";
	other = reserve_as(&r);
	assert_int_equal(listed(&(struct store_effect_filter){ 0 }), 0);
	for (i = 0; i < 150; i++)
		emit(&lease, "mail");
	emit(&other, "mail");
	goes("mail", EFFECT_DELIVERED);
	goes("mail", EFFECT_DEAD_LETTER);
	raw("UPDATE once_effect SET updated_at = 0 WHERE id <= 100");
	before = clock_wall() - HOUR;
	assert_int_equal(listed(&(struct store_effect_filter){ 0 }), 151);
	assert_int_equal(
	    listed(&(struct store_effect_filter){ .state = EFFECT_PENDING }),
	    149);
	assert_int_equal(
	    listed(&(struct store_effect_filter){ .state = EFFECT_DELIVERED }),
	    1);
	assert_int_equal(
	    listed(&(struct store_effect_filter){ .scope = "bob" }), 1);
	assert_int_equal(
	    listed(&(struct store_effect_filter){ .scope = "" }), 0);
	assert_int_equal(
	    listed(&(struct store_effect_filter){ .path = "/payments" }), 150);
	assert_int_equal(listed(&(struct store_effect_filter){
			     .path = "/payments", .scope = "bob" }),
	    0);
	assert_int_equal(
	    listed(&(struct store_effect_filter){ .since = before }), 51);
}

/* --- news and counts ---------------------------------------------------- */

TOPICS_TEST(doctor_tells_of_the_outbox)
{
	static const char text[] = "[effect mail]\nprogram = /bin/true\n";
	static const char *const broken[] = {
		"UPDATE once_effect SET next_at = NULL",
		"UPDATE once_effect SET next_at = 0 WHERE state = 'pending'",
		"UPDATE once_effect SET payload = NULL WHERE state = 'pending'",
		"INSERT INTO once_payload VALUES (3, x'00')",
		"INSERT INTO once_payload VALUES (77, x'00')",
		"UPDATE once_effect SET key_id = 99 WHERE state = 'delivered'",
	};
	char mail[] = "mail";
	char *topics[] = { mail };
	struct store_lease lease = reserve("k");
	struct conf *conf = conf_from(text);
	size_t i;

	for (i = 0; i < 3; i++)
		emit(&lease, "mail");
	goes("mail", EFFECT_DELIVERED);
	assert_int_equal(doctor_says("outbox"), '+');
	assert_int_equal(doctor_says("effects"), '+');
	assert_int_equal(doctor_says("topics"), '+');
	assert_int_equal(doctor_tells("topics", conf, NULL), '+');
	assert_int_equal(store_topics(store, NULL, 0, topics, 1), RC_OK);
	assert_int_equal(doctor_says("topics"), '-');
	assert_int_equal(doctor_tells("topics", conf, NULL), '+');
	conf_unref(conf);
	conf = conf_from("");
	assert_int_equal(doctor_tells("topics", conf, NULL), '-');
	conf_unref(conf);
	goes("mail", EFFECT_DEAD_LETTER);
	assert_int_equal(doctor_says("outbox"), '-');
	assert_int_equal(store_effect_retry(store, 2), RC_OK);
	assert_int_equal(doctor_says("outbox"), '+');
	raw("CREATE TABLE was AS SELECT * FROM once_effect");
	for (i = 0; i < COUNT(broken); i++) {
		/* PostgreSQL has a constraint instead */
		if (is_postgresql() && strstr(broken[i], "payload") != NULL)
			continue;
		assert_int_equal(doctor_says("effects"), '+');
		raw(broken[i]);
		if (doctor_says("effects") != '-')
			fail_msg("%s", broken[i]);
		if (!is_postgresql())
			raw("DELETE FROM once_payload");
		raw("DELETE FROM once_effect;"
		    "INSERT INTO once_effect SELECT * FROM was");
	}
}

/* --- at random ---------------------------------------------------------- */

#define KEYS 3

/* Of each key, what was put there last, and what went out last. */
struct walk {
	struct store_lease lease[KEYS];
	struct effect tried[KEYS];
	int64_t delivered[KEYS];
	uint64_t seed;
};

static unsigned
draw(struct walk *w, unsigned n)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(w->seed >> 33) % n;
}

static int
key_index(const struct walk *w, const struct effect *e)
{
	int i;

	for (i = 0; w->lease[i].id != e->key_id; i++)
		assert_true(i < KEYS);
	return i;
}

/* Nothing earlier of its key is pending. */
static void
check_order(const struct effect *e)
{
	char sql[200];

	snprintf(sql, sizeof(sql),
	    "SELECT count(*) FROM once_effect WHERE key_id = %" PRId64
	    " AND state = 'pending' AND id < %" PRId64,
	    e->key_id, e->id);
	assert_int_equal(raw_number(sql), 0);
}

static void
walk_step(struct walk *w)
{
	const char *topic = draw(w, 2) == 0 ? "mail" : "sms";
	unsigned i = draw(w, KEYS);
	struct effect e;
	int64_t id = 1 + draw(w, 40);

	switch (draw(w, 8)) {
	case 0:
	case 1:
		emit(&w->lease[i], topic);
		break;
	case 2:
	case 3:
		if (next_in(store, topic, &e) != RC_OK)
			break;
		check_order(&e);
		assert_int_equal(store_effect_begin(store, &e), RC_OK);
		i = (unsigned)key_index(w, &e);
		assert_int_equal(w->tried[i].id, 0);
		w->tried[i] = e;
		break;
	case 4:
	case 5:
		if (w->tried[i].id == 0)
			break;
		assert_int_equal(
		    try_end(store, &w->tried[i],
			(enum effect_state)(1 + draw(w, 3)), draw(w, 2) * HOUR),
		    RC_OK);
		effect_free(&w->tried[i]);
		break;
	case 6:
		(void)store_effect_retry(store, id);
		break;
	case 7:
		if (draw(w, 3) == 0)
			(void)store_effect_drop(store, id);
		break;
	}
}

/* What is left is delivered once nothing disturbs it. */
static void
walk_ends(struct walk *w)
{
	struct effect e;
	bool more = true;
	int i;

	for (i = 0; i < KEYS; i++)
		if (w->tried[i].id != 0)
			end(&w->tried[i], EFFECT_DELIVERED);
	raw("UPDATE once_effect SET next_at = 0 WHERE next_at > 0");
	while (more) {
		more = false;
		for (i = 0; i < 2; i++) {
			if (next_in(store, i == 0 ? "mail" : "sms", &e) !=
			    RC_OK)
				continue;
			check_order(&e);
			assert_int_equal(store_effect_begin(store, &e), RC_OK);
			end(&e, EFFECT_DELIVERED);
			more = true;
		}
	}
	assert_int_equal(raw_number("SELECT count(*) FROM once_effect WHERE "
				    "state = 'pending'"),
	    0);
}

TOPICS_TEST(turns_hold_whatever_happens)
{
	struct walk w;
	unsigned seed;
	int i, step;
	char key[8];

	for (seed = 1; seed <= 8; seed++) {
		begin_anew();
		memset(&w, 0, sizeof(w));
		w.seed = seed;
		for (i = 0; i < KEYS; i++) {
			snprintf(key, sizeof(key), "%u.%d", seed, i);
			w.lease[i] = reserve(key);
		}
		for (step = 0; step < 150; step++) {
			walk_step(&w);
			check_store();
		}
		walk_ends(&w);
	}
}
