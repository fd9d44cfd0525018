/*
 * budget: what is taken is bounded, and a large demand has its turn.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "budget.h"

/* A thread that takes bytes. */
struct taker {
	pthread_t thread;
	struct budget *budget;
	size_t bytes;
	_Atomic pid_t tid;
	atomic_bool has;
};

static void *
take(void *arg)
{
	struct taker *t = arg;

	atomic_store(&t->tid, gettid());
	budget_take(t->budget, t->bytes);
	atomic_store(&t->has, true);
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

static void
no_more_than_the_total_is_taken(void **state)
{
	struct taker one = { .budget = budget_new(10), .bytes = 1 };

	(void)state;
	assert_non_null(one.budget);
	budget_take(one.budget, 4);
	budget_take(one.budget, 6);
	budget_take(one.budget, 0);
	start_and_see_it_wait(&one);
	budget_give(one.budget, 6);
	assert_int_equal(pthread_join(one.thread, NULL), 0);
	assert_true(atomic_load(&one.has));
	budget_take(one.budget, 5);
	budget_give(one.budget, 10);
	budget_free(one.budget);
	budget_free(NULL);
}

static void
a_later_demand_does_not_pass_one_that_waits(void **state)
{
	struct taker all = { .budget = budget_new(10), .bytes = 10 };
	struct taker one = { .budget = all.budget, .bytes = 1 };

	(void)state;
	assert_non_null(all.budget);
	budget_take(all.budget, 1);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_than_the_total_is_taken),
		cmocka_unit_test(a_later_demand_does_not_pass_one_that_waits),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
