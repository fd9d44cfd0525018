/*
 * store: a recent row that cannot be read or changed.  What needs all recent
 * keys is refused, and no key is lost once the page is mended.
 */
#include "config.h"

#include <fcntl.h>

#include "buf.h"
#include "limit.h"
#include "metrics.h"
#include "../power/vfs.h"
#include "store_fixture.h"

#define PAGE 1024
#define MANY 300 /* more keys than are recent */

static int64_t first;             /* the numbers of the keys begin after that */
static unsigned char whole[PAGE]; /* the page before the damage, */
static off_t place;               /* and where it is */

enum damage { DAMAGED_LEAF, LOST_OVERFLOW, DAMAGES };

static size_t
read_varint(const unsigned char *p, int64_t *out)
{
	size_t n = 0;

	*out = 0;
	do
		*out = *out * 128 + (p[n] & 0x7f);
	while ((p[n++] & 0x80) != 0 && n < 8);
	return n;
}

/* Whether the page is a leaf of once_key that has the row.  *pointer is the
 * place of the number of its first overflow page, if it has one. */
static bool
has_row(const unsigned char *page, int64_t id, size_t *pointer)
{
	const int64_t least = (PAGE - 12) * 32 / 255 - 23;
	const unsigned char *cell;
	int64_t size, rowid, local;
	size_t n;

	if (page[0] != 0x0d || memmem(page, PAGE, "/payments", 9) == NULL)
		return false;
	for (int i = 0; i < page[3] * 256 + page[4]; i++) {
		cell = page + page[8 + 2 * i] * 256 + page[9 + 2 * i];
		n = read_varint(cell, &size);
		n += read_varint(cell + n, &rowid);
		local = least + (size - least) % (PAGE - 4);
		if (local > PAGE - 35)
			local = least;
		*pointer = (size_t)(cell - page) + n + (size_t)local;
		if (rowid == id)
			return true;
	}
	return false;
}

/* Damages the row of the database, which is closed. */
static void
damage_row(int64_t id, enum damage damage)
{
	unsigned char page[PAGE];
	size_t pointer;
	int fd = open(file, O_RDWR);
	off_t at = 0;

	assert_int_not_equal(fd, -1);
	for (;; at += PAGE) {
		assert_int_equal(pread(fd, page, PAGE, at), PAGE);
		if (at > 0 && has_row(page, id, &pointer))
			break;
	}
	memcpy(whole, page, PAGE);
	place = at;
	switch (damage) {
	case DAMAGED_LEAF:
		page[0] = 0x55;
		break;
	case LOST_OVERFLOW:
		assert_in_range(pointer, 1, PAGE - 4);
		page[pointer] = 0x7f;
		break;
	case DAMAGES:
		fail();
	}
	assert_int_equal(pwrite(fd, page, PAGE, at), PAGE);
	close(fd);
}

/* Forty keys of which the eleventh cannot be read, and a lease of a dead
 * process. */
static void
begin_with(enum damage damage)
{
	first += 10000; /* a process logs a number once */
	set_value(NULL, M_LAST_ID, first);
	set_value(NULL, M_RECENT, first);
	complete_many("a", 10, HOUR);
	/* it needs overflow pages */
	put_answer("victim0", 2000);
	complete_many("b", 30, HOUR);
	reserve("lost");
	lose_owner("lost");
	pass_retention("b28");
	store_close(store);
	damage_row(value_of("victim0", K_ID), damage);
	store = open_store();
}

static void
mend_page(void)
{
	int fd = open(file, O_RDWR);

	assert_int_not_equal(fd, -1);
	assert_int_equal(pwrite(fd, whole, PAGE, place), PAGE);
	close(fd);
}

static enum rc
try_reserve(const char *key, unsigned max_active)
{
	struct store_reservation r = reservation(key);
	struct store_lease lease;
	struct record found;
	enum decision d;
	enum rc rc;

	r.max_active = max_active;
	rc = store_reserve(store, &r, &lease, &d, &found);
	record_free(&found);
	return rc;
}

static bool
is_damage(enum rc rc)
{
	return rc == RC_CORRUPT || rc == RC_IO;
}

/* Returns the number of new keys before the first one that is refused. */
static int
fill_up(void)
{
	const char *key;
	enum rc rc;

	for (int n = 0; n < MANY; n++) {
		key = textf("new%d", n);
		if ((rc = try_reserve(key, 0)) == RC_OK)
			continue;
		assert_true(is_damage(rc));
		assert_int_equal(state_of(key), RECORD_NONE);
		return n;
	}
	return MANY;
}

STORE_TEST(what_needs_all_recent_keys_is_refused_and_answers_are_found)
{
	struct store_change changes[STORE_EXPIRE_MAX];
	int n;

	for (enum damage d = 0; d < DAMAGES; d++) {
		begin_with(d);
		/* these read no overflow page */
		if (d != LOST_OVERFLOW) {
			assert_true(is_damage(store_recover(
			    store, STORE_EXPIRE_MAX, changes, &n)));
			assert_true(is_damage(store_expire(
			    store, STORE_EXPIRE_MAX, changes, &n)));
			assert_true(is_damage(try_reserve("x", 2)));
			assert_int_equal(state_of("x"), RECORD_NONE);
		}
		assert_in_range(fill_up(), 1, 127);
		assert_int_equal(state_of("a0"), RECORD_COMPLETED);
		assert_int_equal(state_of("b29"), RECORD_COMPLETED);
		store_close(store);
		mend_page();
		empty_dir();
		store = open_store();
	}
}

STORE_TEST(once_it_is_mended_all_keys_are_found)
{
	int64_t all;

	for (enum damage d = 0; d < DAMAGES; d++) {
		begin_with(d);
		fill_up();
		store_close(store);
		mend_page();
		store = open_store();
		assert_int_equal(expire(1), 1);
		assert_string_equal(changed.key, "b28");
		while (sweep(store) > 0)
			continue;
		assert_int_equal(state_of("lost"), RECORD_UNKNOWN);
		delete_all_but(RECORD_COMPLETED);
		complete_many("n", MANY, HOUR);
		all = count_of(KEYS);
		assert_in_range(recent_keys(), 64, 127);
		assert_int_equal(listed_by_age() + recent_keys(), all);
		store_close(store);
		empty_dir();
		store = open_store();
	}
}

/* Rows that a foreign program has written, and that no statement of ours would
 * write. */
STORE_TEST(rows_in_a_bad_shape_are_listed)
{
	static const struct bad_value shapes[][BAD_VALUES] = {
		{ { K_TOKEN, "'x'" } },
		{ { K_REPLAYABLE, "7" } },
		{ { K_STATE, "'bogus'" } },
		{ { K_STATUS, "NULL" } },
		{ { K_OWNER, "7" } },
		{ { K_STATE, "'in_progress'" }, { K_TOKEN, "NULL" } },
	};

	for (size_t i = 0; i < COUNT(shapes); i++) {
		put_answer("v0", 2000);
		spoil_all("v0", shapes[i]);
		complete_many("n", MANY, HOUR);
		assert_int_equal(value_of("v0", K_LISTED), 1);
		delete_all(KEYS);
	}
}

static void
refuse_writes(void)
{
	vfs_break(&(struct vfs_fault){ .call = VFS_WRITE,
	    .nth = 1,
	    .code = SQLITE_READONLY,
	    .lasting = true });
}

/* The disk may refuse them all, and then says nothing about a row. */
STORE_TEST(a_failing_write_makes_no_row_bad)
{
	struct store_reservation r = reservation("new");
	struct store_options o = options();
	struct store_lease lease;
	struct record found;
	enum decision d;
	int64_t before;

	complete_many("a", 1, HOUR);
	store_close(store);
	refuse_writes();
	o.create = false;
	o.busy_timeout = 100;
	store = open_with(o);
	before = bad_rows();
	assert_int_equal(
	    store_reserve(store, &r, &lease, &d, &found), RC_READONLY);
	assert_int_equal(bad_rows(), before);
	store_close(store);
	vfs_repair();
	store = open_store();
	complete_many("b", 1, HOUR);
}

/* Permissions alone do not show it: the store is opened, and refuses writes. */
STORE_TEST(a_store_that_refuses_writes_is_not_started)
{
	struct store_options o = options();
	char err[256] = "";

	store_close(store);
	store = NULL;
	refuse_writes();
	assert_int_equal(store_open(&store, &o, err, sizeof(err)), RC_READONLY);
	assert_non_null(strstr(err, "a file may not be written"));
	vfs_repair();
	store = open_store();
}

GROUP(begin_group, NULL)
