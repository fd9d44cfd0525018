/*
 * store: attempts whose process tree holds a lock, and markers of keys past
 * their retention.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>

#include "store_fixture.h"
#include "store_ops.h"

/* --- attempts ----------------------------------------------------------- */

static struct store_reservation
resumable(const char *key, const struct store_attempt *at)
{
	struct store_reservation r = reservation(key);

	r.on_crash = CONF_CRASH_RESUME;
	r.attempt = at;
	return r;
}

/* A process with a lease, and one that it left its attempt's lock to. */
struct family {
	pid_t owner;
	int hold; /* the heir ends when it is closed; -1: there is none */
	struct store_lease lease;
	struct store_attempt attempt;
};

/* Has nothing but the lock and the end of a pipe, and then says so. */
static void
be_heir(const struct family *family, int hold, int out)
{
	int fd[3] = { family->attempt.fd, hold, out }, i;
	char c;

	for (i = 0; i < 3; i++)
		if ((fd[i] = fcntl(fd[i], F_DUPFD, 100)) == -1)
			_exit(1);
	for (i = 0; i < 3; i++)
		if (dup2(fd[i], 3 + i) == -1)
			_exit(1);
	close_range(6, ~0U, 0);
	if (write(5, family, sizeof(*family)) != sizeof(*family))
		_exit(1);
	close(5);
	(void)!read(4, &c, 1);
	_exit(0);
}

static void
be_owner(const char *key, int64_t lease, const int *hold, int out)
{
	struct family family;
	struct store_reservation r;

	memset(&family, 0, sizeof(family));
	be_child();
	if (hold[1] != -1)
		close(hold[1]);
	store = open_store();
	assert_ok(store_attempt_lock(store, &family.attempt));
	r = resumable(key, &family.attempt);
	r.lease = lease;
	r.reconcile_delay = 1;
	give_request(&r, NULL, 0);
	family.lease = reserve_as(&r);
	assert_ok(store_attempt_begin(
	    &family.attempt, family.lease.token, family.lease.id));
	if (hold[0] != -1 && fork() == 0)
		be_heir(&family, hold[0], out);
	if (hold[0] == -1 &&
	    write(out, &family, sizeof(family)) != sizeof(family))
		_exit(1);
	for (;;)
		pause();
}

/* No store is open here while it is forked: SQLite does not survive that. */
static struct family
start_family(const char *key, int64_t lease, bool heir)
{
	int out[2], hold[2] = { -1, -1 };
	struct family family;
	pid_t pid;

	assert_null(store);
	assert_int_equal(pipe(out), 0);
	if (heir)
		assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0)
		be_owner(key, lease, hold, out[1]);
	close(out[1]);
	assert_int_equal(read(out[0], &family, sizeof(family)), sizeof(family));
	close(out[0]);
	if (heir)
		close(hold[0]);
	family.owner = pid;
	family.hold = hold[1];
	return family;
}

static void
attempt_file(char *name, size_t size, const struct store_attempt *at)
{
	snprintf(name, size, "%s-attempts/%016llx", local_files(),
	    (unsigned long long)at->lock);
}

/* Waits until the kernel has dropped its lock. */
static void
end_heir(struct family *family)
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
	struct family family = start_family("k", 60000, false);
	struct store_lease second;
	struct store_attempt at;
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

	assert_ok(store_attempt_lock(store, &at));
	r = resumable("k", &at);
	second = reserve_as(&r);
	assert_int_equal(second.id, family.lease.id);
	assert_int_equal(second.attempt, 2);
	assert_string_equal(second.downstream, family.lease.downstream);
	assert_string_equal(second.recovery_point, "charged");
	assert_string_not_equal(second.token, family.lease.token);
	assert_int_not_equal(at.lock, family.attempt.lock);
	close(at.fd);
}

DIR_TEST(a_held_key_does_not_hold_up_others)
{
	struct family held = start_family("held", 60000, true);
	struct family free_one = start_family("free", 60000, false);

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
	struct family family;

	snprintf(lock, sizeof(lock), "%s-lock", local_files());
	snprintf(other, sizeof(other), "%s-other", local_files());
	for (size_t i = 0; i < COUNT(breaks); i++) {
		family = start_family("k", 60000, false);
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

STORE_TEST(an_attempt_is_gone_when_no_process_holds_its_lock)
{
	struct store_attempt at;
	char name[440];
	int copy;

	assert_ok(store_attempt_lock(store, &at));
	assert_true(at.fd >= 0 && at.lock > 0 && at.file > 0);
	assert_true((fcntl(at.fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_false(store_attempt_gone(store, &at));
	copy = dup(at.fd);
	close(at.fd);
	assert_false(store_attempt_gone(store, &at));
	close(copy);
	assert_true(store_attempt_gone(store, &at));

	/* a file that is not there says nothing, */
	attempt_file(name, sizeof(name), &at);
	assert_int_equal(unlink(name), 0);
	assert_false(store_attempt_gone(store, &at));
	/* but that it was made before this boot */
	at.lock ^= INT64_C(3) << 40;
	assert_true(store_attempt_gone(store, &at));
}

STORE_TEST(only_a_key_that_may_be_resumed_has_a_lock)
{
	struct store_reservation r;
	struct store_attempt at;
	struct store_lease lease;
	struct record found;
	enum decision d;

	assert_ok(store_attempt_lock(store, &at));
	r = resumable("k", NULL);
	assert_int_equal(
	    store_reserve(store, &r, &lease, &d, &found), RC_INVALID);
	r = resumable("k", &at);
	r.on_crash = CONF_CRASH_UNKNOWN;
	assert_int_equal(
	    store_reserve(store, &r, &lease, &d, &found), RC_INVALID);
	assert_int_equal(state_of("k"), RECORD_NONE);
	/* settled, the key has none any more */
	r = resumable("k", &at);
	lease = reserve_as(&r);
	assert_int_equal(value_of(NULL, K_ATTEMPT_LOCK), at.lock);
	settle(&lease, RECORD_FAILED_RETRYABLE);
	assert_int_equal(count_with(K_ATTEMPT_LOCK), 0);
	assert_int_equal(count_with(K_LOCK_FILE), 0);
	close(at.fd);
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
		assert_int_equal(count_of(BODIES), 0);
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

STORE_TEST(a_marker_stays_for_its_own_retention)
{
	struct store_reservation r = marked("k", HOUR);
	int64_t end;

	over(&r, RECORD_COMPLETED);
	end = value_of(NULL, K_EXPIRES_AT);
	/* reaped late, it ends no later */
	add_to(NULL, K_EXPIRES_AT, -60000);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_int_equal(value_of(NULL, K_EXPIRES_AT), end - 60000 + HOUR);
	add_to(NULL, K_EXPIRES_AT, -3600001);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_int_equal(changed.to, RECORD_NONE);
	assert_int_equal(state_of("k"), RECORD_NONE);
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
