/*
 * store: attempts whose process tree holds a lock, and markers of keys past
 * their retention.
 */
#include "config.h"

#include <fcntl.h>

#include "store_fixture.h"
#include "store_lost.h"
#include "store_ops.h"

/* --- attempts ----------------------------------------------------------- */

/* Of a process with a lease, and with an heir or none. */
static struct lost
start_family(const char *key, bool heir)
{
	struct store_reservation r;
	struct lost lost;

	if (lost_fork(&lost, heir)) {
		r = lost_resumable(&lost, key);
		r.reconcile_delay = 1;
		give_request(&r, NULL, 0);
		lost.lease = reserve_as(&r);
		assert_ok(store_attempt_begin(
		    &lost.attempt, lost.lease.token, lost.lease.id));
		lost_stay(&lost);
	}
	return lost;
}

static void
attempt_file(char *name, size_t size, const struct store_attempt *at)
{
	snprintf(name, size, "%s-attempts/%016llx", local_files(),
	    (unsigned long long)at->lock);
}

/* Waits until the kernel has dropped its lock. */
static void
end_heir(struct lost *family)
{
	struct flock lock;
	char name[440];
	int fd;

	close(family->hold);
	family->hold = -1;
	attempt_file(name, sizeof(name), &family->attempt);
	assert_true((fd = open(name, O_RDWR | O_CLOEXEC)) != -1);
	memset(&lock, 0, sizeof(lock));
	lock.l_type = F_WRLCK;
	lock.l_whence = SEEK_SET;
	assert_int_equal(fcntl(fd, F_OFD_SETLKW, &lock), 0);
	close(fd);
	assert_true(store_attempt_gone(store, &family->attempt));
}

DIR_TEST(its_tree_gone_a_key_is_released)
{
	struct lost family = start_family("k", false), next;
	struct store_lease second;
	struct store_reservation r;

	store = open_store();
	spoil("k", K_RECOVERY_POINT, "'charged'");
	assert_int_equal(sweep(store), 0); /* its owner lives */
	kill_and_wait(family.owner);
	assert_int_equal(recover_in(store, 1), 1);
	assert_int_equal(changed.id, family.lease.id);
	assert_string_equal(changed.key, "k");
	assert_int_equal(changed.from, RECORD_IN_PROGRESS);
	assert_int_equal(changed.to, RECORD_FAILED_RETRYABLE);
	assert_retention("k", HOUR);
	assert_int_equal(count_of(REQUESTS), 0);
	assert_int_equal(
	    finish(&family.lease, outcome(RECORD_COMPLETED)), RC_LOST);

	r = lost_resumable(&next, "k");
	second = reserve_as(&r);
	assert_int_equal(second.id, family.lease.id);
	assert_int_equal(second.attempt, 2);
	assert_string_equal(second.downstream, family.lease.downstream);
	assert_string_equal(second.recovery_point, "charged");
	assert_string_not_equal(second.token, family.lease.token);
	assert_int_not_equal(next.attempt.lock, family.attempt.lock);
	close(next.attempt.fd);
}

DIR_TEST(a_held_key_does_not_hold_up_others)
{
	struct lost held = start_family("held", true);
	struct lost free_one = start_family("free", false);

	kill_and_wait(held.owner);
	kill_and_wait(free_one.owner);
	store = open_store();
	assert_int_equal(recover_in(store, 1), 1);
	assert_string_equal(changed.key, "free");
	assert_int_equal(sweep(store), 0);
	assert_int_equal(state_of("held"), RECORD_IN_PROGRESS);
	end_heir(&held);
}

/*
 * What a lock in another file says of this one is nothing: the key may wait
 * for its deadline, but is never released.
 */
DIR_TEST(by_another_lock_file_nothing_is_released)
{
	static const struct bad_value breaks[] = {
		{ NO_COLUMN, NULL }, /* the lock file itself is another */
		{ K_LOCK_FILE, "1" },
		{ K_LOCK_FILE, "NULL" },
		{ K_ATTEMPT_LOCK, "NULL" },
		{ K_ATTEMPT_LOCK, "0" },
		{ K_ATTEMPT_LOCK, "-1" },
	};
	char lock[420], other[420];
	struct lost family;

	snprintf(lock, sizeof(lock), "%s-lock", local_files());
	snprintf(other, sizeof(other), "%s-other", local_files());
	for (size_t i = 0; i < COUNT(breaks); i++) {
		family = start_family("k", false);
		kill_and_wait(family.owner);
		if (breaks[i].value == NULL) /* its inode stays taken */
			assert_int_equal(rename(lock, other), 0);
		else
			spoil("k", breaks[i].column, breaks[i].value);
		store = open_store();
		assert_int_equal(sweep(store), 0);
		assert_int_equal(state_of("k"), RECORD_IN_PROGRESS);
		set_value("k", K_LOCKED_UNTIL, 1);
		assert_int_equal(sweep(store), 1);
		assert_int_equal(state_of("k"), RECORD_UNKNOWN);
		forget_key(family.lease.id);
		store_close(store);
		store = NULL;
	}
}

STORE_TEST(a_key_that_is_settled_names_no_attempt)
{
	struct lost one;
	struct store_reservation r = lost_resumable(&one, "k");
	struct store_lease lease = reserve_as(&r);

	assert_int_equal(value_of(NULL, K_ATTEMPT_LOCK), one.attempt.lock);
	settle(&lease, RECORD_FAILED_RETRYABLE);
	assert_int_equal(count_with(K_ATTEMPT_LOCK), 0);
	assert_int_equal(count_with(K_LOCK_FILE), 0);
	close(one.attempt.fd);
}

/* --- markers ------------------------------------------------------------ */

static struct store_reservation
marked(const char *key, int64_t expired_retention)
{
	struct store_reservation r = reservation(key);

	r.on_expired = CONF_EXPIRED_GONE;
	r.expired_retention = expired_retention;
	return r;
}

/* A key that has just passed its retention. */
static struct store_lease
over(const struct store_reservation *r, enum record_state state)
{
	struct store_lease lease = reserve_as(r);

	if (state == RECORD_COMPLETED)
		answer_for(&lease, 5000, 0);
	else
		settle_for(&lease, state, 0);
	return lease;
}

/* The answer to the same request, and to another with its key. */
static void
is_gone(struct store_reservation r)
{
	assert_int_equal(decision_as(&r), DECIDE_GONE);
	r.fingerprint[3] ^= 1;
	assert_int_equal(decision_as(&r), DECIDE_MISMATCH);
}

STORE_TEST(past_its_retention_a_marked_key_is_gone)
{
	static const enum record_state states[] = { RECORD_COMPLETED,
		RECORD_FAILED_RETRYABLE };
	struct store_reservation r;
	struct store_lease first, second;

	for (size_t i = 0; i < COUNT(states); i++) {
		r = marked(record_state_name(states[i]), HOUR);
		first = over(&r, states[i]);
		is_gone(r); /* though no pass has seen it yet */
		assert_int_equal(state_of(r.identity.key), states[i]);

		assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
		assert_int_equal(changed.to, RECORD_EXPIRED);
		assert_int_equal(state_of(r.identity.key), RECORD_EXPIRED);
		is_gone(r);
		assert_int_equal(no_answer(first.id), RC_NOTFOUND);
		assert_int_equal(count_of(PIECES), 0);
		assert_int_equal(expire(STORE_EXPIRE_MAX), 0);

		/* and in the end it is new */
		pass_retention(r.identity.key);
		second = reserve_as(&r);
		assert_int_equal(second.attempt, 1);
		assert_true(second.id > first.id);
		assert_string_not_equal(second.downstream, first.downstream);
		settle(&second, RECORD_UNKNOWN);
	}
}

/* --- bounds ------------------------------------------------------------- */

STORE_TEST(a_batch_is_bounded_in_bytes)
{
	complete_many("", 5, 0);
	set_value(NULL, K_BODY_LENGTH, STORE_EXPIRE_BYTES - 1);
	/* until it is enough, the one that makes it so included */
	assert_int_equal(expire(STORE_EXPIRE_MAX), 2);
	/* and one that is larger than a batch may be */
	set_value(NULL, K_BODY_LENGTH, 700000000);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 0);
}
