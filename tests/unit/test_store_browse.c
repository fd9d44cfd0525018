/*
 * Searches: what is found, by which index, and how a long list goes on.
 */
#include "config.h"

#include "sealed.h"
#include "store_fixture.h"
#include "store_ops.h"

/* More keys than one answer tells. */
#define MANY (2 * STORE_BROWSE_ROWS + 30)

/* Follows the list from its beginning to its end: the rows that are told, each
 * once. */
static int
follow(struct store_browse b)
{
	int64_t seen[2 * MANY];
	struct store_found found;
	char position[STORE_POSITION];
	int n = 0;

	do {
		assert_ok(store_browse(store, &b, &found));
		assert_true(found.count >= (int64_t)found.n);
		for (size_t i = 0; i < found.n; i++) {
			assert_true(n < 2 * MANY);
			for (int k = 0; k < n; k++)
				assert_true(seen[k] != found.id[i]);
			seen[n++] = found.id[i];
		}
		memcpy(position, found.next, sizeof(position));
		b.after = position;
	} while (position[0] != '\0');
	return n;
}

STORE_TEST(every_list_goes_on)
{
	static const struct {
		const char *name;
		struct store_browse browse;
	} rows[] = {
		{ "newest first", { .oldest = false } },
		{ "oldest first", { .oldest = true } },
		{ "of an open state",
		    { .filter = { .state = RECORD_UNKNOWN } } },
		{ "oldest of an open state",
		    { .filter = { .state = RECORD_UNKNOWN }, .oldest = true } },
		{ "in progress",
		    { .filter = { .state = RECORD_IN_PROGRESS } } },
		{ "of a name", { .filter = { .key = "k" } } },
		{ "of an address", { .filter = { .peer = "192.0.2.7" } } },
	};
	struct store_reservation r = reservation("k");
	struct store_lease lease;
	char scope[16];
	int n;

	r.identity.scope = scope;
	r.peer = "192.0.2.7";
	for (int i = 0; i < 2 * MANY; i++) {
		snprintf(scope, sizeof(scope), "%d", i);
		r.identity.key = i % 2 == 0 ? "k" : "other";
		if (i % 2 != 0)
			r.peer = NULL;
		lease = reserve_as(&r);
		r.peer = "192.0.2.7";
		if (i % 2 != 0)
			assert_ok(finish(&lease, outcome(RECORD_UNKNOWN)));
	}
	for (size_t i = 0; i < COUNT(rows); i++) {
		n = follow(rows[i].browse);
		if (n != (i < 2 ? 2 * MANY : MANY))
			fail_msg("%s: %d", rows[i].name, n);
	}
}

/* The first rows are told, and the others are counted, as far as there is
 * time: a busy machine may need another try. */
STORE_TEST(a_list_says_how_many_more)
{
	struct store_browse b = { .filter.state = RECORD_IN_PROGRESS };
	struct store_found found = { .all = false };

	reserve_many("", MANY);
	for (int i = 0; i < 100 && !found.all; i++)
		assert_ok(store_browse(store, &b, &found));
	assert_int_equal(found.n, STORE_BROWSE_ROWS);
	assert_int_equal(found.count, MANY);
	assert_true(found.all && found.back_to == 0);
	b.after = "here";
	assert_int_equal(store_browse(store, &b, &found), RC_INVALID);
	b.after = "1.2x";
	assert_int_equal(store_browse(store, &b, &found), RC_INVALID);
}

/* Keys that were made one a minute, before now. */
STORE_TEST(a_time_is_found_by_numbers)
{
	const int64_t now = store_wall(store, store_now(store)), minute = 60000;
	struct store_browse b = { .oldest = false };
	struct store_found found;

	reserve_many("", 200);
	set_range(K_CREATED_AT, 0, 199, now - 199 * minute, minute);
	b.filter.from = now - 99 * minute;
	assert_int_equal(follow(b), 100);
	b.filter.to = now - 49 * minute;
	assert_int_equal(follow(b), 50);
	b.oldest = true;
	assert_int_equal(follow(b), 50);
	b.filter.from = 0;
	assert_int_equal(follow(b), 150);
	b.oldest = false;
	b.filter.to = now - 500 * minute;
	assert_ok(store_browse(store, &b, &found));
	assert_true(found.n == 0 && found.all && found.back_to == 0);
}

/* --- a downstream key ----------------------------------------------------- */

/* What the index has is the number on SQLite, and the digest on PostgreSQL, of
 * which a UUID has room for the beginning. */
static bool
is_in_range(const struct row_range *range, const struct row_value *v)
{
	return v->n == 0 ? v->number == range->first.number &&
		range->first.number == range->last.number
			 : memcmp(v->bytes, range->first.bytes, 7) == 0 &&
		memcmp(v->bytes, range->last.bytes, 7) == 0;
}

STORE_TEST(a_key_is_found_by_its_downstream_key)
{
	const struct store_reservation r = reservation("k");
	const struct row_value number = store_number(store, &r.identity).first;
	struct store_lease lease = reserve_as(&r);
	struct store_browse b = { .filter = {
				      .downstream = lease.downstream } };
	struct store_found found;
	struct row_range told;

	reserve("other");
	assert_ok(store_sealed_range(
	    store, SEALED_DOWNSTREAM, lease.downstream, &told));
	assert_true(is_in_range(&told, &number));
	assert_ok(store_browse(store, &b, &found));
	assert_true(found.n == 1 && found.id[0] == lease.id);
	/* One that tells nothing here is looked for in all rows. */
	spoil("k", K_DOWNSTREAM,
	    is_postgresql() ? "'123e4567-e89b-42d3-a456-426614174000'"
			    : "x'123e4567e89b42d3a456426614174000'");
	assert_ok(store_browse(store, &b, &found));
	assert_true(found.n == 0 && found.all);
	b.filter.downstream = "123E4567-e89b-42d3-a456-426614174000";
	assert_int_equal(store_sealed_range(store, SEALED_DOWNSTREAM,
			     b.filter.downstream, &told),
	    RC_NOTFOUND);
	assert_ok(store_browse(store, &b, &found));
	assert_true(found.n == 1 && found.id[0] == lease.id);
}

/* How many keys a list has. */
static int
listed(const struct store_filter *filter)
{
	struct store_cursor *list;
	struct record row;
	int n = 0;

	assert_ok(store_list(store, filter, &list));
	for (; store_list_next(list, &row) == RC_OK; n++)
		record_free(&row);
	store_list_free(list);
	return n;
}

/* More than the neighbours that are compared were made by a wrong clock. */
STORE_TEST(every_key_is_looked_at_for_a_time)
{
	const int64_t now = store_wall(store, store_now(store)), hour = 3600000;
	const struct store_filter young = { .from = now - hour },
				  old = { .to = now - hour };

	reserve_many("", 900);
	for (int i = 0; i < 2; i++) {
		set_range(K_CREATED_AT, 0, 899,
		    now - (i == 0 ? 2 * hour : hour / 2), 0);
		set_range(K_CREATED_AT, 300, 599,
		    i == 0 ? now + 16 * hour : now - 5 * hour, 0);
		assert_int_equal(listed(&young), i == 0 ? 300 : 600);
		assert_int_equal(listed(&old), i == 0 ? 600 : 300);
	}
}
