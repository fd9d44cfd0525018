/*
 * store: the life of a key, answers byte for byte, passes, and what operators
 * ask.  What goes wrong around it is in test_store_faults.c.
 */
#include "config.h"

#include <sys/stat.h>

#include "store_fixture.h"

/* --- reserving ---------------------------------------------------------- */

STORE_TEST(a_new_key_is_reserved)
{
	struct store_lease lease = reserve("k");
	struct record r = find("k");

	assert_true(lease.id > 0);
	assert_int_equal(lease.attempt, 1);
	assert_string_equal(lease.recovery_point, "started");
	assert_int_equal(strlen(lease.token), RECORD_TOKEN_LEN);
	for (size_t i = 0; i < RECORD_TOKEN_LEN; i++)
		assert_non_null(strchr("0123456789abcdef", lease.token[i]));
	assert_int_equal(strlen(lease.downstream), RECORD_UUID_LEN);
	assert_int_equal(lease.downstream[14], '4');
	assert_non_null(strchr("89ab", lease.downstream[19]));

	assert_int_equal(r.id, lease.id);
	assert_int_equal(r.state, RECORD_IN_PROGRESS);
	assert_int_equal(r.attempt, 1);
	assert_string_equal(r.token, lease.token);
	assert_string_equal(r.downstream, lease.downstream);
	assert_string_equal(r.fingerprint_spec, "1 json");
	assert_int_equal(r.fingerprint[FINGERPRINT_LEN - 1], 0xa5);
	assert_int_equal(r.expires_at, 0);
	assert_true(r.updated_at > clock_wall() - 10000);
	assert_false(r.replayable);
	record_free(&r);
}

STORE_TEST(an_identity_is_scope_path_and_key)
{
	static const struct {
		const char *scope, *path, *key;
	} rows[] = {
		{ "alice", "/payments", "k" },
		{ "bob", "/payments", "k" },
		{ "", "/payments", "k" },
		{ "alice", "/payments/", "k" },
		{ "alice", "/payments", "K" },
		{ "alice", "/payments", "k " },
		{ "alice", "/payment", "sk" },
		{ "alice/", "/payments", "k" },
		{ "alice", "/payments", "\303\244' OR 1 --" },
	};
	struct store_reservation r = reservation("");
	struct record record;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		r.identity.scope = rows[i].scope;
		r.identity.path = rows[i].path;
		r.identity.key = rows[i].key;
		assert_int_equal(
		    store_find(store, &r.identity, &record), RC_NOTFOUND);
		reserve_as(&r);
		assert_int_equal(decision_as(&r), DECIDE_BUSY);
	}
	assert_int_equal(count_of(KEYS), i);
}

/* What a retry finds, with the same fingerprint and with another. */
STORE_TEST(a_retry_gets_what_the_state_says)
{
	static const struct {
		const char *name;
		enum record_state state;
		bool keep;
		enum decision same;
	} rows[] = {
		{ "in progress", RECORD_IN_PROGRESS, false, DECIDE_BUSY },
		{ "completed", RECORD_COMPLETED, true, DECIDE_REPLAY },
		{ "completed, not kept", RECORD_COMPLETED, false,
		    DECIDE_NOT_KEPT },
		{ "unknown", RECORD_UNKNOWN, false, DECIDE_UNKNOWN },
		{ "released", RECORD_FAILED_RETRYABLE, false, DECIDE_RUN },
	};
	struct store_reservation r;
	struct store_outcome *s;
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(rows); i++) {
		lease = reserve(rows[i].name);
		if (rows[i].state != RECORD_IN_PROGRESS) {
			s = outcome(rows[i].state);
			s->keep = rows[i].keep;
			assert_ok(finish(&lease, s));
		}
		for (int byte = 0; byte < FINGERPRINT_LEN;
		     byte += FINGERPRINT_LEN - 1) {
			r = reservation(rows[i].name);
			r.fingerprint[byte] ^= 1;
			assert_int_equal(decision_as(&r), DECIDE_MISMATCH);
		}
		assert_int_equal(state_of(rows[i].name), rows[i].state);
		assert_int_equal(decision_for(rows[i].name), rows[i].same);
	}
}

STORE_TEST(another_fingerprint_spec_is_not_compared_here)
{
	struct store_lease lease = reserve("k"), unused;
	struct store_reservation r = reservation("k");
	struct record found;
	enum decision d;

	settle(&lease, RECORD_COMPLETED);
	r.fingerprint_spec = "2 exact";
	memset(r.fingerprint, 0, sizeof(r.fingerprint));
	assert_ok(store_reserve(store, &r, &unused, &d, &found));
	assert_int_equal(d, DECIDE_BUSY);
	assert_int_equal(found.state, RECORD_COMPLETED);
	assert_string_equal(found.fingerprint_spec, "1 json");
	assert_int_equal(found.fingerprint[0], 0xa5);

	/* made again by the record's own fingerprint spec, it is */
	r.fingerprint_spec = found.fingerprint_spec;
	memcpy(r.fingerprint, found.fingerprint, sizeof(r.fingerprint));
	assert_int_equal(decision_as(&r), DECIDE_REPLAY);
	record_free(&found);
}

/* --- settling ----------------------------------------------------------- */

/* Whatever it says, nothing is settled by that lease. */
static void
assert_lost(const struct store_lease *lease)
{
	for (size_t i = 0; i < COUNT(run_ends); i++)
		assert_int_equal(finish(lease, outcome(run_ends[i])), RC_LOST);
}

STORE_TEST(only_the_lease_settles_and_only_once)
{
	struct store_lease lease, wrong;
	const char *key;

	for (size_t i = 0; i < COUNT(run_ends); i++) {
		key = record_state_name(run_ends[i]);
		lease = reserve(key);
		wrong = lease;
		wrong.token[5] = wrong.token[5] == '0' ? '1' : '0';
		assert_lost(&wrong);
		wrong = lease;
		wrong.id++;
		assert_lost(&wrong);
		assert_int_equal(state_of(key), RECORD_IN_PROGRESS);
		settle(&lease, run_ends[i]);
		assert_lost(&lease);
		assert_int_equal(state_of(key), run_ends[i]);
	}
}

/* --- answers ------------------------------------------------------------ */

STORE_TEST(bodies_come_back_byte_for_byte)
{
	static const size_t lengths[] = { 0, 1, 1000, 2047, 2048, 2049, 65535,
		65536, 65537, 131071, 131072, 131073, 262144, 262145, 1000000,
		16 * 1024 * 1024 };
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		lease = put_answer(textf("%zu", lengths[i]), lengths[i]);
		if (!answer_is(lease.id, lengths[i]))
			fail_msg("%zu bytes", lengths[i]);
	}
	/* large ones are not in the row of their key */
	assert_int_equal(value_of(NULL, K_BODY_STORED), 2048);
	assert_int_equal(bodies_in_pieces(), 11);
}

STORE_TEST(a_handlers_body_comes_back_byte_for_byte)
{
	static const size_t lengths[] = { 0, 1, 2048, 2049, 131073, 1048576,
		1048577, 5000000 };
	unsigned char *bytes = make_bytes(5000000);
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		lease = reserve("k");
		respond(&lease, bytes, lengths[i]);
		if (!answer_is(lease.id, lengths[i]))
			fail_msg("%zu bytes", lengths[i]);
		/* what it printed does not matter */
		answer_with(&lease, 3);
		if (!answer_is(lease.id, lengths[i]))
			fail_msg("%zu bytes, confirmed", lengths[i]);
		forget_key(lease.id);
		assert_int_equal(count_of(PIECES), 0);
	}
	free(bytes);
}

STORE_TEST(a_head_comes_back_as_it_was)
{
	struct store_lease lease = reserve("k");
	struct store_outcome *s = outcome(RECORD_COMPLETED);
	struct response r;
	struct spool *body;

	s->response.status = 599;
	s->response.kind = RESPONSE_LOCAL_REDIRECT;
	snprintf(s->response.reason, sizeof(s->response.reason), "Odd One");
	response_add(&s->response, "Link", "<a>; rel=\"x\"");
	response_add(&s->response, "X-Bytes", "\xe4\xff'");
	response_add(&s->response, "Link", "<b>");
	assert_ok(finish(&lease, s));
	response_init(&r);
	assert_ok(store_answer(store, owner_of(lease.id), lease.id, &r, &body));
	assert_int_equal(r.status, 599);
	assert_int_equal(r.kind, RESPONSE_LOCAL_REDIRECT);
	assert_string_equal(r.reason, "Odd One");
	assert_string_equal(r.fields.data,
	    "Link: <a>; rel=\"x\"\r\nX-Bytes: \xe4\xff'\r\nLink: <b>\r\n");
	assert_null(body);
	assert_int_equal(r.body_len, 0);
	response_free(&r);
}

/* Whether store_lookup() gives an answer of that length with the record. */
static bool
look_gives(const char *key, size_t length)
{
	struct store_reservation rv = reservation(key);
	struct store_inline_answer small;
	struct record r;
	bool is;

	store_inline_answer_init(&small);
	assert_ok(store_lookup(store, &rv.identity, &r, &small));
	is = small.is;
	if (is) {
		assert_int_equal(small.response.status, 201);
		assert_int_equal(small.response.body_len, length);
		assert_true(are_bytes(small.response.body, length));
	} else {
		assert_int_equal(small.body.len, 0);
		assert_int_equal(small.response.fields.len, 0);
	}
	store_inline_answer_free(&small);
	record_free(&r);
	return is;
}

STORE_TEST(a_small_answer_comes_with_its_record)
{
	static const size_t lengths[] = { 0, 1, 2048, 2049 };
	struct store_lease lease;
	const char *key;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		key = textf("%zu", lengths[i]);
		lease = reserve(key);
		assert_false(look_gives(key, 0));
		answer_with(&lease, lengths[i]);
		assert_int_equal(
		    look_gives(key, lengths[i]), lengths[i] <= 2048);
	}
}

STORE_TEST(only_a_kept_answer_is_given)
{
	struct store_lease lease = reserve("k"), other = reserve("o");
	struct store_outcome *s = outcome(RECORD_COMPLETED);

	assert_int_equal(no_answer(lease.id), RC_NOTFOUND);
	s->keep = false;
	give_body(s, 5000);
	assert_ok(finish(&lease, s));
	assert_int_equal(no_answer(lease.id), RC_NOTFOUND);
	settle(&other, RECORD_UNKNOWN);
	assert_int_equal(no_answer(other.id), RC_NOTFOUND);
	assert_int_equal(no_answer(12345), RC_NOTFOUND);
	assert_int_equal(count_of(PIECES), 0);
}

/* --- age ---------------------------------------------------------------- */

STORE_TEST(past_its_retention_a_key_is_new)
{
	static const enum record_state states[] = { RECORD_COMPLETED,
		RECORD_FAILED_RETRYABLE };
	struct store_reservation r;
	struct store_lease first, second;

	for (size_t i = 0; i < COUNT(states); i++) {
		r = reservation(record_state_name(states[i]));
		first = reserve_as(&r);
		if (states[i] == RECORD_COMPLETED)
			answer_for(&first, 3000, 0);
		else
			settle_for(&first, states[i], 0);

		/* whatever it was, and however it was compared */
		r.fingerprint[7] ^= 1;
		r.fingerprint_spec = "3 other";
		second = reserve_as(&r);
		assert_int_equal(second.attempt, 1);
		assert_true(second.id > first.id);
		assert_string_not_equal(second.downstream, first.downstream);
		assert_string_equal(second.recovery_point, "started");
		assert_int_equal(no_answer(first.id), RC_NOTFOUND);
	}
	assert_int_equal(count_of(PIECES), 0);
	assert_int_equal(count_of(KEYS), 2);
}

STORE_TEST(reaping_is_bounded_and_oldest_first)
{
	struct store_lease lease;

	for (int i = 0; i < 250; i++) {
		lease = reserve(textf("%03d", i));
		answer_for(&lease, i < 10 ? 4000 : 0, i < 240 ? 0 : HOUR);
	}
	/* the later ones end first */
	set_range(K_EXPIRES_AT, 0, 239, 999, -1);
	assert_int_equal(expire(7), 7);
	assert_int_equal(state_of("233"), RECORD_NONE);
	assert_int_equal(state_of("232"), RECORD_COMPLETED);
	assert_int_equal(expire(0), 0);
	/* a batch is no larger than STORE_EXPIRE_MAX */
	assert_int_equal(expire(1000), 100);
	assert_int_equal(expire(1000), 100);
	assert_int_equal(expire(1000), 33);
	assert_int_equal(count_of(KEYS), 10);
	assert_int_equal(count_of(PIECES), 0);
	assert_int_equal(expire(1000), 0);
}

static void
give_three_bodies(void)
{
	struct store_lease lease;

	for (int i = 0; i < 3; i++) {
		lease = reserve(textf("%d", i));
		answer_for(&lease, 1024 * 1024, 0);
	}
}

STORE_TEST(what_reaping_frees_is_used_again)
{
	int64_t before;

	give_three_bodies();
	before = raw_number("PRAGMA page_count");
	assert_int_equal(expire(100), 3);
	give_three_bodies();
	assert_true(raw_number("PRAGMA page_count") <= before + 16);
}

/* --- time --------------------------------------------------------------- */

STORE_TEST(store_time_is_the_same_for_all)
{
	struct store *other = open_store();
	int64_t a, b, c;

	a = store_now(store);
	b = store_now(other);
	c = store_now(store);
	assert_true(a <= b && b <= c);
	store_close(other);
}

/* A virtual machine that was set back keeps the name of its boot. */
STORE_TEST(store_time_never_goes_back)
{
	int64_t last;

	store_close(store);
	add_to(NULL, C_LAST, 5000000);
	last = value_of(NULL, C_LAST);
	store = open_store();
	assert_true(store_now(store) >= last);
	assert_true(store_now(store) < last + 60000);
}

STORE_TEST(store_time_is_written_at_a_sweep)
{
	struct store_options o = options();
	int64_t now;

	store_close(store);
	add_to(NULL, C_LAST, -40000);
	o.create = false; /* a daemon writes it at its start, too */
	store = open_with(o);
	now = store_now(store);
	assert_int_equal(sweep(store), 0);
	assert_true(value_of(NULL, C_LAST) >= now);
}

STORE_TEST(wall_time_of_a_store_time)
{
	const int64_t before = clock_wall();
	const int64_t wall = store_wall(store, store_now(store) + HOUR) - HOUR;

	/* The time of a server is as exact as its answer was fast. */
	assert_in_range(wall, before - 1000, clock_wall() + 1000);
}

/* --- operators ---------------------------------------------------------- */

static int
listed(const struct store_filter *f, char *keys, size_t size)
{
	struct store_cursor *c;
	struct record row;
	size_t len = 0;
	int n = 0;
	enum rc rc;

	keys[0] = '\0';
	assert_ok(store_list(store, f, &c));
	while ((rc = store_list_next(c, &row)) == RC_OK) {
		if (len < size)
			len += (size_t)snprintf(
			    keys + len, size - len, "%s ", row.key);
		record_free(&row);
		n++;
	}
	assert_int_equal(rc, RC_NOTFOUND);
	store_list_free(c);
	return n;
}

STORE_TEST(lists_are_filtered)
{
	static const struct {
		const char *name;
		struct store_filter filter;
		const char *keys;
	} rows[] = {
		{ "all, in order of creation", { 0 }, "z b a c z " },
		{ "of a key", { .key = "z" }, "z z " },
		{ "of no key", { .key = "none" }, "" },
		{ "of a scope", { .scope = "bob" }, "c z " },
		{ "of the empty scope", { .scope = "" }, "" },
		{ "of a path", { .path = "/payments" }, "z b a c z " },
		{ "of another path", { .path = "/pay" }, "" },
		{ "of a state", { .state = RECORD_COMPLETED }, "b " },
		{ "of a key and a scope", { .key = "z", .scope = "bob" },
		    "z " },
		{ "of a key and a state",
		    { .key = "z", .state = RECORD_UNKNOWN }, "z " },
		{ "made an hour ago", { .to = 1 }, "a " },
		{ "a key made an hour ago", { .key = "b", .to = 1 }, "" },
		{ "made in the last hour", { .from = 1 }, "z b c z " },
		{ "made in no time", { .from = 1, .to = 1 }, "" },
		{ "changed since then", { .since = 1 }, "z b a c z " },
		{ "of paths that begin so", { .path = "/pay", .below = true },
		    "z b a c z " },
		{ "of a beginning that is none",
		    { .path = "/payments/", .below = true }, "" },
		{ "of an address", { .peer = "192.0.2.7" }, "c z " },
		{ "of a longer address", { .peer = "192.0.2.70" }, "" },
		{ "of an address and a state",
		    { .peer = "192.0.2.7", .state = RECORD_IN_PROGRESS },
		    "c z " },
	};
	struct store_filter filter;
	int64_t hour_ago;
	struct store_lease z = reserve("z"), b = reserve("b");
	struct store_reservation r;
	char keys[200];

	settle(&b, RECORD_COMPLETED);
	settle(&z, RECORD_UNKNOWN);
	reserve("a");
	r = reservation("c");
	r.identity.scope = "bob";
	r.peer = "192.0.2.7";
	reserve_as(&r);
	r.identity.key = "z";
	reserve_as(&r);
	add_to("a", K_CREATED_AT, -3700000);
	hour_ago = store_wall(store, store_now(store)) - HOUR;
	for (size_t i = 0; i < COUNT(rows); i++) {
		filter = rows[i].filter;
		filter.from *= hour_ago;
		filter.to *= hour_ago;
		filter.since *= hour_ago;
		listed(&filter, keys, sizeof(keys));
		if (strcmp(keys, rows[i].keys) != 0)
			fail_msg("%s: %s", rows[i].name, keys);
	}
}

STORE_TEST(long_lists_come_in_pages)
{
	struct store_filter f = { 0 };
	struct store_cursor *c;
	struct record row;
	char keys[2000];
	int64_t last = 0;

	reserve_many("", 130);
	assert_int_equal(listed(&f, keys, sizeof(keys)), 130);
	/* while one is read, others write */
	assert_ok(store_list(store, &f, &c));
	for (int n = 0; store_list_next(c, &row) == RC_OK; n++) {
		assert_true(row.id > last);
		last = row.id;
		record_free(&row);
		if (n == 10)
			reserve("meanwhile");
		if (n == 20)
			break;
	}
	store_list_free(c); /* with rows left in it */
	store_list_free(NULL);
}

/* A kind of key in a list of all. */
struct kind {
	enum record_state state; /* RECORD_IN_PROGRESS: the attempt runs */
	size_t length;           /* of the body */
	bool keep, request, output;
	bool small; /* the list has its answer */
};

/* Makes a key of that kind; returns its number. */
static int64_t
make_kind(const struct kind *k, const char *key)
{
	struct store_reservation r = reservation(key);
	struct store_outcome *o;
	struct store_lease lease;

	if (k->request) {
		r.reconcile_delay = HOUR;
		give_request(&r, NULL, 0);
	}
	lease = reserve_as(&r);
	if (k->state == RECORD_IN_PROGRESS)
		return lease.id;
	o = outcome(k->state);
	o->keep = k->keep;
	give_body(o, k->length);
	o->refused.is = k->output;
	assert_ok(finish(&lease, o));
	return lease.id;
}

static bool
is_of_kind(const struct store_listed *l, const struct kind *k)
{
	const struct response *r = &l->answer.response;

	return l->key.state == k->state && l->key.replayable == k->keep &&
	    l->answer.is == k->small && l->request == k->request &&
	    l->output == k->output &&
	    (!k->small ||
		(r->status == 201 && r->body_len == k->length &&
		    are_bytes(r->body, k->length)));
}

STORE_TEST(a_list_of_all_has_what_belongs_to_each_key)
{
	static const struct kind kinds[] = {
		{ .state = RECORD_COMPLETED, .keep = true, .small = true },
		{ .state = RECORD_COMPLETED,
		    .length = STORE_INLINE,
		    .keep = true,
		    .small = true },
		{ .state = RECORD_COMPLETED,
		    .length = STORE_INLINE + 1,
		    .keep = true },
		{ .state = RECORD_COMPLETED, .length = 10 },
		{ .state = RECORD_UNKNOWN, .request = true },
		{ .state = RECORD_UNKNOWN, .request = true, .output = true },
		{ .state = RECORD_FAILED_RETRYABLE, .output = true },
		{ .state = RECORD_IN_PROGRESS },
	};
	struct store_cursor *c;
	struct store_listed l;
	int64_t id[140];
	size_t n;

	for (n = 0; n < COUNT(id); n++)
		id[n] = make_kind(&kinds[n % COUNT(kinds)], textf("%zu", n));
	assert_ok(store_list_all(store, &c));
	for (n = 0; store_list_all_next(c, &l) == RC_OK; n++) {
		assert_true(n < COUNT(id));
		assert_int_equal(l.key.id, id[n]);
		if (!is_of_kind(&l, &kinds[n % COUNT(kinds)]))
			fail_msg("key %zu", n);
		store_listed_free(&l);
	}
	assert_int_equal(n, COUNT(id));
	store_list_free(c);
	/* with rows left in it */
	assert_ok(store_list_all(store, &c));
	assert_ok(store_list_all_next(c, &l));
	store_listed_free(&l);
	store_list_free(c);
}

/* A page is filled beyond a bad row, and the list goes on. */
STORE_TEST(bad_rows_do_not_end_a_list)
{
	static const char *const bad[] = { "2", "63", "64", "129" };
	struct store_filter f = { 0 };
	char keys[2000];

	reserve_many("", 130);
	for (size_t i = 0; i < COUNT(bad); i++)
		set_value(bad[i], K_ATTEMPT, -1);
	assert_int_equal(listed(&f, keys, sizeof(keys)), 126);
	f.state = RECORD_IN_PROGRESS;
	assert_int_equal(listed(&f, keys, sizeof(keys)), 126);
}

STORE_TEST(stats_count)
{
	struct store_counts c;

	assert_ok(store_stats(store, &c));
	assert_int_equal(c.keys[RECORD_IN_PROGRESS], 0);
	assert_int_equal(c.oldest_unknown_wall, 0);
	assert_int_equal(c.answer_bytes, 0);

	reserve("a");
	reserve("b");
	put_answer("c", 5000);
	put("d", RECORD_UNKNOWN);
	put("e", RECORD_UNKNOWN);
	set_value("d", K_UPDATED_AT, 77);
	assert_ok(store_stats(store, &c));
	assert_int_equal(c.keys[RECORD_IN_PROGRESS], 2);
	assert_int_equal(c.keys[RECORD_COMPLETED], 1);
	assert_int_equal(c.keys[RECORD_UNKNOWN], 2);
	assert_int_equal(c.keys[RECORD_FAILED_RETRYABLE], 0);
	assert_int_equal(c.oldest_unknown_wall, 77);
	assert_int_equal(c.answer_bytes, 5000);
	assert_int_equal(c.key_rows, 5);
	assert_int_equal(c.effect_rows, 0);
	assert_true(c.database_bytes > 0);
	assert_true(c.wal_bytes > 5000);
}

STORE_TEST(doctor_finds)
{
	static const char *const names[] = { "integrity", "schema", "bodies",
		"requests", "leases", "unknown", "dead_letter", "file" };
	struct store_lease lease = reserve("k");
	struct store_finding few[2];
	size_t n;

	for (size_t i = 0; i < COUNT(names); i++)
		if (doctor_says(names[i]) != '+')
			fail_msg("%s", names[i]);
	assert_ok(store_doctor(store, NULL, few, 2, &n));
	assert_int_equal(n, 2);

	plant_piece(999, 1);
	assert_int_equal(doctor_says("bodies"), '-');
	delete_all(PIECES);
	assert_int_equal(doctor_says("bodies"), '+');
	plant_request(999);
	set_value(NULL, M_KEPT_BYTES, 2);
	assert_int_equal(doctor_says("requests"), '-');
	delete_all(REQUESTS);
	plant_request(lease.id);
	assert_int_equal(doctor_says("requests"), '+');
	set_value(NULL, M_KEPT_BYTES, 3);
	assert_int_equal(doctor_says("requests"), '-');
	set_value(NULL, M_KEPT_BYTES, 2);
	lose_owner("k");
	assert_int_equal(doctor_says("leases"), '-');
	settle(&lease, RECORD_UNKNOWN);
	assert_int_equal(doctor_says("leases"), '+');
	assert_int_equal(doctor_says("requests"), '+');
	assert_int_equal(doctor_says("unknown"), '-');
	set_value("k", K_RECONCILE_AFTER, 1);
	assert_int_equal(doctor_says("unknown"), '+');
	set_state("k", RECORD_DEAD_LETTER);
	assert_int_equal(doctor_says("dead_letter"), '-');
	assert_int_equal(doctor_says("requests"), '+');
	drop_an_index();
	assert_int_equal(doctor_says("schema"), '-');
	chmod(file, 0644);
	assert_int_equal(doctor_says("file"), '-');
	chmod(file, 0640);
	assert_int_equal(doctor_says("file"), '+');
	spoil_an_index();
	assert_int_equal(doctor_says("integrity"), '-');
	raw("PRAGMA user_version = 99");
	assert_int_equal(doctor_says("schema"), '-');
}

STORE_TEST(the_secret_stays)
{
	unsigned char secret[SCOPE_SECRET_LEN];
	struct store *other;
	int i, sum = 0;

	memcpy(secret, store_secret(store), sizeof(secret));
	for (i = 0; i < SCOPE_SECRET_LEN; i++)
		sum |= secret[i];
	assert_int_not_equal(sum, 0);
	other = open_store();
	assert_memory_equal(secret, store_secret(other), sizeof(secret));
	store_close(other);
	reopen();
	assert_memory_equal(secret, store_secret(store), sizeof(secret));
}

/* It would wait for the lock, and write, at each `oncectl ls`. */
STORE_TEST(who_only_looks_writes_nothing)
{
	struct store_options o = options();

	reserve("k");
	set_value(NULL, C_LAST, 5);
	o.create = false;
	store_close(open_with(o));
	assert_int_equal(value_of(NULL, C_LAST), 5);
}

STORE_TEST(closing_nothing)
{
	store_close(NULL);
}
