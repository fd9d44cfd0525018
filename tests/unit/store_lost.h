/*
 * A process that has a lease and is killed, and one that it leaves the lock of
 * its attempt to.  Included by tests only, after store_fixture.h.
 */
#ifndef STORE_LOST_H
#define STORE_LOST_H

#include <fcntl.h>

struct lost {
	pid_t owner;
	int hold; /* the heir ends when it is closed; -1: there is none */
	int out;  /* for the owner: see lost_stay() */
	struct store_lease lease;
	struct store_attempt attempt; /* of a key that may be resumed */
};

/* Whether this is the new process, which has the store open and ends with
 * lost_stay().  No store is open while it is forked: SQLite does not survive
 * that. */
static bool
lost_fork(struct lost *lost, bool heir)
{
	int out[2], hold[2] = { -1, -1 };
	pid_t pid;

	assert_null(store);
	memset(lost, 0, sizeof(*lost));
	assert_int_equal(pipe(out), 0);
	if (heir)
		assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_int_not_equal(pid = fork(), -1);
	if (pid == 0) {
		be_child();
		if (heir)
			close(hold[1]);
		lost->owner = getpid();
		lost->hold = hold[0];
		lost->out = out[1];
		store = open_store();
		return true;
	}
	close(out[1]);
	assert_int_equal(read(out[0], lost, sizeof(*lost)), sizeof(*lost));
	close(out[0]);
	if (heir)
		close(hold[0]);
	lost->hold = hold[1];
	return false;
}

/* A reservation of a key that its process's end may release. */
static UNUSED struct store_reservation
lost_resumable(struct lost *lost, const char *key)
{
	struct store_reservation r = reservation(key);

	assert_ok(store_attempt_lock(store, &lost->attempt));
	r.on_crash = CONF_CRASH_RESUME;
	r.attempt = &lost->attempt;
	return r;
}

/* Has nothing but the lock and the end of a pipe, and then says so. */
static void
lost_be_heir(const struct lost *lost)
{
	int fd[3] = { lost->attempt.fd, lost->hold, lost->out }, i;
	char c;

	for (i = 0; i < 3; i++)
		if ((fd[i] = fcntl(fd[i], F_DUPFD, 100)) == -1)
			_exit(1);
	for (i = 0; i < 3; i++)
		if (dup2(fd[i], 3 + i) == -1)
			_exit(1);
	close_range(6, ~0U, 0);
	if (write(5, lost, sizeof(*lost)) != sizeof(*lost))
		_exit(1);
	close(5);
	(void)!read(4, &c, 1);
	_exit(0);
}

/* Makes the heir, and waits until it is killed. */
static __attribute__((noreturn)) void
lost_stay(const struct lost *lost)
{
	if (lost->hold != -1) {
		if (fork() == 0)
			lost_be_heir(lost);
	} else if (write(lost->out, lost, sizeof(*lost)) != sizeof(*lost))
		_exit(1);
	for (;;)
		pause();
}

#endif
