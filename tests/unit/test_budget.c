/*
 * budget: what is taken is bounded, and a large demand has its turn.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget.h"

static void
no_more_than_the_total_is_taken(void **state)
{
	struct budget *b = budget_new(10);

	(void)state;
	assert_non_null(b);
	assert_true(budget_try(b, 4));
	assert_true(budget_try(b, 6));
	assert_false(budget_try(b, 1));
	assert_true(budget_try(b, 0));
	budget_give(b, 6);
	budget_take(b, 5);
	assert_false(budget_try(b, 2));
	budget_give(b, 5);
	budget_give(b, 4);
	budget_free(b);
	budget_free(NULL);
}

static atomic_bool had;

static void *
take_all(void *arg)
{
	budget_take(arg, 10);
	atomic_store(&had, true);
	budget_give(arg, 10);
	return NULL;
}

static void
a_later_demand_does_not_pass_one_that_waits(void **state)
{
	struct budget *b = budget_new(10);
	pthread_t thread;

	(void)state;
	assert_non_null(b);
	assert_true(budget_try(b, 1));
	assert_int_equal(pthread_create(&thread, NULL, take_all, b), 0);
	/* Until it waits, there is room for one more. */
	while (budget_try(b, 1)) {
		budget_give(b, 1);
		sched_yield();
	}
	assert_false(atomic_load(&had));
	budget_give(b, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&had));
	budget_free(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_than_the_total_is_taken),
		cmocka_unit_test(a_later_demand_does_not_pass_one_that_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
