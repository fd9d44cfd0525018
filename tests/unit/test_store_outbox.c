/*
 * store, the outbox: what handlers put there is tried in order for each key,
 * by one process at a time, again after a failure, and never lost.
 *
 * Handlers are a plain connection that writes through the view.
 */
#include "config.h"

#include "conf_fixture.h"
#include "metrics.h"
#include "store_fixture.h"
#include "store_operator.h"
#include "tx.h"

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

	assert_ok(next_in(s, topic, &e));
	assert_ok(store_effect_begin(s, &e));
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
	assert_ok(try_end(store, e, state, state == EFFECT_PENDING ? HOUR : 0));
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

/* The row of that number, NULL for none; it lives until the next call. */
static const struct effect *
row_of(int64_t id)
{
	static struct effect row;

	effect_free(&row);
	return store_browse_effect(store, id, &row) == RC_OK ? &row : NULL;
}

static enum effect_state
effect_state(int64_t id)
{
	const struct effect *row = row_of(id);

	return row != NULL ? row->state : EFFECT_NONE;
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
	assert_ok(store_effect_next(store, "mail", &e, &at));
	assert_true(at <= store_now(store) + SKEW);
	assert_int_equal(e.key_id, lease.id);
	assert_int_equal(e.attempts, 0);
	assert_string_equal(e.topic, "mail");
	assert_string_equal(e.scope, "alice");
	assert_string_equal(e.path, "/payments");
	assert_string_equal(e.key, "k");
	assert_int_equal(strlen(e.effect_key), RECORD_UUID_LEN);
	assert_int_equal(
	    strspn(e.effect_key, "-0123456789abcdef"), RECORD_UUID_LEN);
	assert_int_equal(e.effect_key[14], '4');
	assert_non_null(strchr("89ab", e.effect_key[19]));
	effect_free(&e);
	check_effects();
}

TOPICS_TEST(a_try_counts_and_has_one_owner)
{
	struct store_lease lease = reserve("k");
	struct effect e, same;
	const struct effect *row;

	emit(&lease, "mail");
	assert_ok(next_in(store, "mail", &same));
	e = begin("mail");
	assert_int_equal(e.attempts, 1);
	assert_true(nothing_is_due("mail"));
	assert_int_equal(store_effect_begin(store, &same), RC_LOST);
	assert_int_equal(same.attempts, 0);
	assert_non_null(row = row_of(e.id));
	assert_int_equal(row->attempts, 1);
	assert_int_equal(row->next_at, 0);
	assert_true(row->owner != 0 && !store_owner_is_dead(store, row->owner));
	check_effects();
	end(&e, EFFECT_DELIVERED);
	assert_int_equal(store_effect_begin(store, &same), RC_LOST);
	effect_free(&same);
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

	emit(&lease, "mail");
	e = begin("mail");
	assert_int_equal(try_end(other, &e, EFFECT_DELIVERED, 0), RC_LOST);
	assert_ok(try_end(store, &e, EFFECT_PENDING, 0));
	taken = begin_in(other, "mail");
	assert_int_equal(taken.attempts, 2);
	for (size_t i = 0; i < COUNT(states); i++) {
		assert_int_equal(try_end(store, &e, states[i], 0), RC_LOST);
		assert_int_equal(try_end(store, &taken, states[i], 0), RC_LOST);
	}
	assert_ok(try_end(other, &taken, EFFECT_PENDING, 0));
	assert_int_equal(try_end(other, &taken, EFFECT_PENDING, 0), RC_LOST);
	/* Nor an earlier one of the same process. */
	third = begin("mail");
	for (size_t i = 0; i < COUNT(states); i++)
		assert_int_equal(try_end(store, &e, states[i], 0), RC_LOST);
	end(&third, EFFECT_DELIVERED);
	effect_free(&e);
	effect_free(&taken);
	store_close(other);
	check_effects();
}

static bool
payload_is(const struct effect *e, size_t n)
{
	struct spool *payload;
	enum rc rc = RC_OK;
	bool same;

	assert_ok(store_effect_payload(store, e, &payload));
	if (payload == NULL)
		return n == 0;
	same = spool_length(payload) == n &&
	    are_bytes(spool_bytes(payload, &rc), n) && rc == RC_OK;
	spool_free(payload);
	return same;
}

TOPICS_TEST(payloads_of_all_sizes)
{
	static const int lengths[] = { 0, 1, 2047, 2048, 2049, 70000, 1 << 20 };
	struct store_lease lease = reserve("k");
	struct effect e;
	struct spool *payload;
	unsigned char *bytes = make_bytes(1 << 20);

	for (size_t i = 0; i < COUNT(lengths); i++)
		assert_true(try_emit(&lease, "mail", bytes, lengths[i]));
	assert_int_equal(count_of(PIECES), is_postgresql() ? 3 : 10);
	check_effects();
	for (size_t i = 0; i < COUNT(lengths); i++) {
		e = begin("mail");
		if (!payload_is(&e, (size_t)lengths[i]))
			fail_msg("%d bytes", lengths[i]);
		assert_ok(try_end(store, &e, EFFECT_DELIVERED, 0));
		/* It is gone: that is no empty one. */
		assert_int_equal(
		    store_effect_payload(store, &e, &payload), RC_CORRUPT);
		effect_free(&e);
		check_effects();
	}
	assert_int_equal(count_of(PIECES), 0);
	free(bytes);
}

/* --- processes ---------------------------------------------------------- */

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
		forget_key(lease->id);
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
		delete_all(KEYS);
		forget_effects();
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
		check_effects();
	}
}

TOPICS_TEST(keys_with_many_effects_are_reaped_a_few_at_a_time)
{
	int n, sum = 0, rounds = 0;

	complete_many("", 4, 0);
	add_delivered(NULL, 900);
	for (; (n = expire(STORE_EXPIRE_MAX)) > 0; rounds++)
		sum += n;
	assert_int_equal(sum, 4);
	assert_int_equal(rounds, 2);
	assert_int_equal(count_of(EFFECTS), 0);
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

	assert_ok(store_outbox_list(store, filter, &o));
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
	static const struct {
		struct store_effect_filter filter; /* since 1: an hour ago */
		int n;
	} rows[] = {
		{ { 0 }, 151 },
		{ { .state = EFFECT_PENDING }, 149 },
		{ { .state = EFFECT_DELIVERED }, 1 },
		{ { .scope = "bob" }, 1 },
		{ { .scope = "" }, 0 },
		{ { .path = "/payments" }, 150 },
		{ { .path = "/payments", .scope = "bob" }, 0 },
		{ { .since = 1 }, 51 },
	};
	struct store_effect_filter filter;
	struct store_lease lease = reserve("k"), other;
	struct store_reservation r = reservation("other");

	r.identity.scope = "bob";
	r.identity.path = "/orders";
	other = reserve_as(&r);
	assert_int_equal(listed(&(struct store_effect_filter){ 0 }), 0);
	for (int i = 0; i < 150; i++)
		emit(&lease, "mail");
	emit(&other, "mail");
	goes("mail", EFFECT_DELIVERED);
	goes("mail", EFFECT_DEAD_LETTER);
	spoil_effects_to(100, E_UPDATED_AT, "0");
	for (size_t row = 0; row < COUNT(rows); row++) {
		filter = rows[row].filter;
		filter.since *= clock_wall() - HOUR;
		if (listed(&filter) != rows[row].n)
			fail_msg("row %zu", row);
	}
}

/* --- news and counts ---------------------------------------------------- */

TOPICS_TEST(doctor_tells_of_the_outbox)
{
	static const char text[] = "[effect mail]\nprogram = /bin/true\n";
	static const struct {
		enum effect_state state;
		enum column column;
		const char *value;
		int64_t payload_of; /* in PostgreSQL there is none apart */
	} broken[] = {
		{ EFFECT_PENDING, E_NEXT_AT, "NULL", 0 },
		{ EFFECT_PENDING, E_NEXT_AT, "0", 0 },
		{ EFFECT_DELIVERED, E_KEY_ID, "99", 0 },
		{ EFFECT_PENDING, E_PAYLOAD, "NULL", 0 },
		{ .payload_of = 3 },
		{ .payload_of = 77 },
	};
	char mail[] = "mail";
	char *topics[] = { mail };
	struct store_lease lease = reserve("k");
	struct conf *conf = conf_from(text);

	for (size_t i = 0; i < 3; i++)
		emit(&lease, "mail");
	goes("mail", EFFECT_DELIVERED);
	assert_int_equal(doctor_says("outbox"), '+');
	assert_int_equal(doctor_says("effects"), '+');
	assert_int_equal(doctor_says("topics"), '+');
	assert_int_equal(doctor_tells("topics", conf, NULL), '+');
	assert_ok(store_topics(store, NULL, 0, topics, 1));
	assert_int_equal(doctor_says("topics"), '-');
	assert_int_equal(doctor_tells("topics", conf, NULL), '+');
	conf_unref(conf);
	conf = conf_from("");
	assert_int_equal(doctor_tells("topics", conf, NULL), '-');
	conf_unref(conf);
	goes("mail", EFFECT_DEAD_LETTER);
	assert_int_equal(doctor_says("outbox"), '-');
	assert_ok(store_effect_retry(store, 2));
	assert_int_equal(doctor_says("outbox"), '+');
	save_effects();
	for (size_t i = 0; i < COUNT(broken); i++) {
		assert_int_equal(doctor_says("effects"), '+');
		if (broken[i].payload_of != 0)
			plant_piece(TX_PAYLOAD_PIECES(broken[i].payload_of), 1);
		else
			spoil_effects(
			    broken[i].state, broken[i].column, broken[i].value);
		if (doctor_says("effects") != '-')
			fail_msg("row %zu", i);
		restore_effects();
	}
}

/* --- at random ---------------------------------------------------------- */

#define WALKED 3

/* Of each key, what was put there last, and what went out last. */
struct walk {
	struct store_lease lease[WALKED];
	struct effect tried[WALKED];
	int64_t delivered[WALKED];
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
		assert_true(i < WALKED);
	return i;
}

static void
walk_step(struct walk *w)
{
	const char *topic = draw(w, 2) == 0 ? "mail" : "sms";
	unsigned i = draw(w, WALKED);
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
		assert_int_equal(pending_before(&e), 0);
		assert_ok(store_effect_begin(store, &e));
		i = (unsigned)key_index(w, &e);
		assert_int_equal(w->tried[i].id, 0);
		w->tried[i] = e;
		break;
	case 4:
	case 5:
		if (w->tried[i].id == 0)
			break;
		assert_ok(try_end(store, &w->tried[i],
		    (enum effect_state)(1 + draw(w, 3)), draw(w, 2) * HOUR));
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

	for (int i = 0; i < WALKED; i++)
		if (w->tried[i].id != 0)
			end(&w->tried[i], EFFECT_DELIVERED);
	make_effects_due();
	while (more) {
		more = false;
		for (int i = 0; i < 2; i++) {
			if (next_in(store, i == 0 ? "mail" : "sms", &e) !=
			    RC_OK)
				continue;
			assert_int_equal(pending_before(&e), 0);
			assert_ok(store_effect_begin(store, &e));
			end(&e, EFFECT_DELIVERED);
			more = true;
		}
	}
	assert_int_equal(count_effects(EFFECT_PENDING), 0);
}

TOPICS_TEST(turns_hold_whatever_happens)
{
	struct walk w;
	unsigned seed;
	int step;

	/* a step on PostgreSQL takes four times as long */
	for (seed = 1; seed <= (is_postgresql() ? 3 : 8); seed++) {
		forget_effects();
		memset(&w, 0, sizeof(w));
		w.seed = seed;
		for (int i = 0; i < WALKED; i++)
			w.lease[i] = reserve(textf("%u.%d", seed, i));
		for (step = 0; step < 150; step++) {
			walk_step(&w);
			check_effects();
		}
		walk_ends(&w);
	}
}
