/*
 * leader: which thread leads, which gets a request, and when.  A thread of the
 * test is a worker or the standby thread; the test reads from it what it was
 * told, one by one.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cases.h"

#include "leader.h"

#define SPARE 100 /* instead of a task: the spare thread has the turn */

static struct leader *leader;
static atomic_bool enough; /* of LOOP */
static int file = -1;      /* for READ */

/* A thread that does what it is told to. */
struct thread {
	pthread_t id;
	sem_t go, told;
	enum { NEXT, COME, LOOP, POST, PASS, READ, QUIT } order;
	int task; /* what leader_next() said, or SPARE */
	bool has_turn;
};

/* Reads a block of the file from the disk: whether that was counted. */
static bool
read_block(void)
{
	struct rusage before, after;
	char block[4096];

	assert_int_equal(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
	assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
	assert_int_equal(pread(file, block, sizeof(block), 0), sizeof(block));
	assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
	return after.ru_inblock > before.ru_inblock;
}

static void *
run(void *arg)
{
	struct thread *t = arg;

	for (;;) {
		sem_wait(&t->go);
		switch (t->order) {
		case NEXT:
			t->task = leader_next(leader);
			break;
		case COME:
			leader_stand_by(leader);
			t->task = SPARE;
			break;
		case LOOP:
			do
				leader_stand_by(leader);
			while (!atomic_load(&enough));
			t->task = SPARE;
			break;
		case READ:
			t->task = read_block();
			break;
		case POST:
			leader_post(leader);
			break;
		case PASS:
			leader_yield();
			break;
		case QUIT:
			return NULL;
		}
		t->has_turn = leader_leads(leader);
		sem_post(&t->told);
	}
}

static void
begin(struct thread *t)
{
	sem_init(&t->go, 0, 0);
	sem_init(&t->told, 0, 0);
	assert_int_equal(pthread_create(&t->id, NULL, run, t), 0);
}

static void
order(struct thread *t, int what)
{
	t->order = what;
	sem_post(&t->go);
}

static void
wait_for(struct thread *t)
{
	sem_wait(&t->told);
}

static void
let(struct thread *t, int what)
{
	order(t, what);
	wait_for(t);
}

static void
end(struct thread *t)
{
	order(t, QUIT);
	pthread_join(t->id, NULL);
	sem_destroy(&t->go);
	sem_destroy(&t->told);
}

static void
expect(struct thread *t, int task, bool has_turn)
{
	assert_int_equal(t->task, task);
	assert_int_equal(t->has_turn, has_turn);
}

static struct thread one, two, spare;

static int
setup(UNUSED void **state)
{
	assert_ok(leader_open(&leader));
	atomic_store(&enough, false);
	begin(&one);
	begin(&two);
	begin(&spare);
	return 0;
}

static int
teardown(UNUSED void **state)
{
	end(&one);
	end(&two);
	end(&spare);
	leader_close(leader);
	return 0;
}

/* The first worker has the turn and handles a request that was posted. */
static void
handle_one(void)
{
	let(&one, NEXT);
	expect(&one, LEADER_RECEIVE, true);
	let(&one, POST);
	let(&one, NEXT);
	expect(&one, LEADER_HANDLE, true);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(who_has_the_turn_handles_a_request_and_keeps_it)
{
	handle_one();
	let(&one, NEXT);
	expect(&one, LEADER_RECEIVE, true);
}

CASE(who_passes_the_turn_gives_it_to_a_worker_that_waits)
{
	handle_one();
	order(&two, NEXT);
	let(&one, PASS);
	assert_false(one.has_turn);
	wait_for(&two);
	expect(&two, LEADER_RECEIVE, true);
	let(&two, POST);
	let(&two, NEXT);
	expect(&two, LEADER_HANDLE, true);
	order(&one, NEXT);
	let(&two, PASS);
	wait_for(&one);
	expect(&one, LEADER_RECEIVE, true);
}

CASE(who_comes_while_another_receives_is_given_what_was_posted)
{
	let(&one, NEXT);
	expect(&one, LEADER_RECEIVE, true);
	let(&one, POST);
	let(&one, POST);
	let(&two, NEXT);
	expect(&two, LEADER_HANDLE, false);
	let(&one, NEXT);
	expect(&one, LEADER_HANDLE, true);
	let(&two, PASS); /* has none: nothing happens */
	let(&one, NEXT);
	expect(&one, LEADER_RECEIVE, true);
}

CASE(the_spare_thread_has_the_turn_while_all_are_busy)
{
	handle_one();
	order(&spare, COME);
	let(&one, PASS);
	wait_for(&spare);
	expect(&spare, SPARE, true);
	/* still: it comes back at once */
	let(&spare, COME);
	expect(&spare, SPARE, true);
}

CASE(a_worker_that_waits_is_called_by_the_spare_thread)
{
	let(&spare, COME);
	order(&one, NEXT);
	let(&spare, POST);
	wait_for(&one);
	expect(&one, LEADER_HANDLE, false);
}

CASE(the_spare_thread_leaves_the_turn_to_a_worker_that_is_free)
{
	let(&spare, COME);
	order(&spare, LOOP);
	order(&one, NEXT);
	wait_for(&one);
	expect(&one, LEADER_RECEIVE, true);
	let(&one, POST);
	let(&one, NEXT);
	expect(&one, LEADER_HANDLE, true);
	atomic_store(&enough, true);
	let(&one, PASS);
	wait_for(&spare);
	expect(&spare, SPARE, true);
}

CASE(the_lead_is_taken_from_a_thread_that_does_not_come_back)
{
	handle_one();
	let(&spare, COME);
	expect(&spare, SPARE, true);
	let(&one, PASS); /* nothing to pass any more */
	assert_false(one.has_turn);
	let(&spare, COME);
	expect(&spare, SPARE, true);
	let(&spare, POST);
	let(&one, NEXT);
	expect(&one, LEADER_HANDLE, false);
}

CASE(what_was_posted_is_handled_before_the_end)
{
	let(&one, NEXT);
	let(&one, POST);
	order(&spare, COME);
	leader_stop(leader);
	let(&one, NEXT);
	expect(&one, LEADER_HANDLE, true);
	let(&one, NEXT);
	expect(&one, LEADER_STOP, false);
	wait_for(&spare);
	expect(&spare, SPARE, true);
	let(&two, NEXT);
	expect(&two, LEADER_STOP, false);
}

CASE(a_worker_that_waits_is_called_at_the_end)
{
	let(&one, NEXT);
	order(&two, NEXT);
	leader_stop(leader);
	wait_for(&two);
	expect(&two, LEADER_STOP, false);
	let(&one, NEXT);
	expect(&one, LEADER_STOP, false);
}

/* Passes through so many requests; whether the turn was kept throughout. */
static bool
keeps_it_for(int requests)
{
	bool kept = true;

	while (requests-- > 0) {
		let(&one, NEXT);
		if (one.task == LEADER_RECEIVE) {
			let(&one, POST);
			let(&one, NEXT);
		}
		assert_int_equal(one.task, LEADER_HANDLE);
		kept = kept && one.has_turn;
	}
	return kept;
}

CASE(after_a_read_from_the_disk_the_turn_is_passed_for_a_while)
{
	char name[] = "leader-XXXXXX", block[4096] = { 1 };
	bool counted;

	file = mkstemp(name);
	assert_true(file != -1);
	unlink(name);
	assert_int_equal(write(file, block, sizeof(block)), sizeof(block));
	assert_int_equal(fsync(file), 0);
	(void)keeps_it_for(200);
	assert_true(keeps_it_for(100));
	let(&one, READ);
	counted = one.task;
	if (counted) {
		assert_false(keeps_it_for(32));
		(void)keeps_it_for(64);
	}
	assert_true(keeps_it_for(100));
	close(file);
	if (!counted)
		skip(); /* a file system in memory, or no counting */
}

/* A thread that reads the program itself from the disk passes the turn, so the
 * first way through the code is no test. */
static int
warm_up(void **state)
{
	(void)setup(state);
	(void)keeps_it_for(200);
	return teardown(state);
}

GROUP(warm_up, NULL)
