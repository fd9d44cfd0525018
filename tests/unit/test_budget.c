/*
 * budget: what is taken is bounded, and a large demand has its turn.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "cases.h"

#include "budget.h"
#include "clock.h"

/* No test waits as long (ms). */
#define LONG 600000

/* A thread that takes bytes. */
struct taker {
	pthread_t thread;
	struct budget *budget;
	size_t bytes;
	int64_t caller, patience; /* (ms) */
	_Atomic pid_t tid;
	atomic_bool has;
};

static void *
take(void *arg)
{
	struct taker *t = arg;

	atomic_store(&t->tid, gettid());
	atomic_store(&t->has,
	    budget_take(
		t->budget, t->bytes, t->caller, clock_mono() + t->patience));
	return NULL;
}

/* Starts it, and waits until it sleeps: it waits for bytes. */
static void
start_and_see_it_wait(struct taker *t)
{
	char name[64], state = '?';
	FILE *file;

	assert_int_equal(pthread_create(&t->thread, NULL, take, t), 0);
	while (atomic_load(&t->tid) == 0)
		sched_yield();
	snprintf(name, sizeof(name), "/proc/self/task/%d/stat",
	    (int)atomic_load(&t->tid));
	while (state != 'S') {
		sched_yield();
		file = fopen(name, "r");
		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
		fclose(file);
	}
	assert_false(atomic_load(&t->has));
}

TEST(no_more_than_the_total_is_taken)
{
	struct taker one = {
		.budget = budget_new(10, 2), .bytes = 1, .patience = LONG
	};

	assert_non_null(one.budget);
	assert_true(budget_take(one.budget, 4, 0, 0));
	assert_true(budget_take(one.budget, 6, 0, 0));
	assert_true(budget_take(one.budget, 0, 0, 0));
	start_and_see_it_wait(&one);
	budget_give(one.budget, 6);
	assert_int_equal(pthread_join(one.thread, NULL), 0);
	assert_true(atomic_load(&one.has));
	assert_true(budget_take(one.budget, 5, 0, 0));
	budget_give(one.budget, 10);
	budget_free(one.budget);
	budget_free(NULL);
}

TEST(a_later_demand_does_not_pass_one_that_waits)
{
	struct taker all = {
		.budget = budget_new(10, 2), .bytes = 10, .patience = LONG
	};
	struct taker one = {
		.budget = all.budget, .bytes = 1, .patience = LONG
	};

	assert_non_null(all.budget);
	assert_true(budget_take(all.budget, 1, 0, 0));
	start_and_see_it_wait(&all);
	/* There are nine left, but another thread was first. */
	start_and_see_it_wait(&one);
	budget_give(all.budget, 1);
	assert_int_equal(pthread_join(all.thread, NULL), 0);
	assert_false(atomic_load(&one.has));
	budget_give(all.budget, 10);
	assert_int_equal(pthread_join(one.thread, NULL), 0);
	budget_give(all.budget, 1);
	budget_free(all.budget);
}

TEST(callers_have_their_turns_and_no_more_than_their_waits)
{
	struct budget *b = budget_new(10, 2);
	struct taker taker[] = {
		{ .budget = b, .bytes = 10, .patience = LONG, .caller = 1 },
		{ .budget = b, .bytes = 10, .patience = LONG, .caller = 1 },
		{ .budget = b, .bytes = 10, .patience = LONG, .caller = 2 },
	};
	static const int turns[] = { 2, 0, 1 };

	assert_non_null(b);
	assert_true(budget_take(b, 10, 1, 0));
	for (int i = 0; i < 3; i++)
		start_and_see_it_wait(&taker[i]);
	assert_false(budget_take(b, 1, 1, clock_mono() + LONG));
	for (int i = 0; i < 3; i++) {
		budget_give(b, 10);
		assert_int_equal(pthread_join(taker[turns[i]].thread, NULL), 0);
		assert_true(atomic_load(&taker[turns[i]].has));
	}
	budget_give(b, 10);
	budget_free(b);
}

TEST(a_wait_ends_at_its_time)
{
	struct taker all = { .budget = budget_new(10, 2), .bytes = 10 };
	struct taker one = {
		.budget = all.budget, .bytes = 1, .patience = LONG
	};

	assert_non_null(all.budget);
	assert_true(budget_take(all.budget, 1, 0, 0));
	assert_false(budget_take(all.budget, 10, 0, 0));
	all.patience = 300;
	start_and_see_it_wait(&all);
	/* One waits behind another one that gives up. */
	assert_false(budget_take(all.budget, 1, 0, 0));
	start_and_see_it_wait(&one);
	assert_int_equal(pthread_join(all.thread, NULL), 0);
	assert_false(atomic_load(&all.has));
	assert_int_equal(pthread_join(one.thread, NULL), 0);
	assert_true(atomic_load(&one.has));
	budget_give(all.budget, 2);
	budget_free(all.budget);
}

TEST(no_thread_waits_after_the_stop)
{
	struct taker all = {
		.budget = budget_new(10, 2), .bytes = 10, .patience = LONG
	};

	assert_non_null(all.budget);
	assert_true(budget_take(all.budget, 1, 0, 0));
	start_and_see_it_wait(&all);
	budget_stop_waiting(all.budget);
	assert_int_equal(pthread_join(all.thread, NULL), 0);
	assert_false(atomic_load(&all.has));
	assert_false(budget_take(all.budget, 10, 0, clock_mono() + LONG));
	assert_true(budget_take(all.budget, 9, 0, 0));
	budget_give(all.budget, 10);
	budget_free(all.budget);
}
