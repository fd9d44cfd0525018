/*
 * helpers: tasks are done elsewhere, and come back to the loop.
 */
#include "config.h"

#include <stdatomic.h>

#include "cases.h"

#include "helpers.h"

enum { TASKS = 500 };

struct task {
	struct helpers_task task; /* the first member */
	int number;
	pthread_t by;
};

static struct task task[TASKS];
static struct loop *loop;
static struct helpers *helpers;
static atomic_int working, most_working, worked;
static atomic_bool held;
static unsigned most;
static int done;

static void
work(struct helpers_task *t)
{
	struct task *x = (struct task *)(void *)t;
	int now = atomic_fetch_add(&working, 1) + 1;
	int before = atomic_load(&most_working);

	while (before < now &&
	    !atomic_compare_exchange_weak(&most_working, &before, now))
		continue;
	x->by = pthread_self();
	x->number = atomic_fetch_add(&worked, 1);
	while (atomic_load(&held))
		continue;
	/* One more can be here. */
	while (most > 1 && atomic_load(&most_working) < 2)
		continue;
	atomic_fetch_sub(&working, 1);
}

static void
task_done(struct helpers_task *t)
{
	const pthread_t by = ((struct task *)(void *)t)->by;

	assert_int_equal(pthread_equal(by, pthread_self()) != 0, most == 0);
	if (++done == TASKS)
		loop_end(loop);
}

/* Also where no thread can be had: then there are none. */
TEST(each_task_is_done_and_comes_back)
{
	static const unsigned threads[] = { 0, 1, 4 };

	for (size_t i = 0; i < COUNT(threads); i++) {
		most = threads[i];
		atomic_store(&most_working, 0);
		atomic_store(&worked, 0);
		done = 0;
		assert_ok(loop_open(&loop));
		assert_ok(helpers_open(&helpers, loop, "helper", most));
		for (int j = 0; j < TASKS; j++) {
			task[j].task = (struct helpers_task){ .work = work,
				.done = task_done };
			helpers_ask(helpers, &task[j].task);
		}
		assert_int_equal(done, 0);
		loop_run(loop);
		assert_int_equal(done, TASKS);
		for (int j = 0; j < TASKS && most < 2; j++)
			assert_int_equal(task[j].number, j);
		if (most < 2)
			assert_int_equal(atomic_load(&most_working), 1);
		else
			assert_in_range(atomic_load(&most_working), 2, most);
		helpers_close(helpers);
		loop_close(loop);
	}
}

static void
first_done(UNUSED struct helpers_task *t)
{
	if (++done == TASKS)
		loop_end(loop);
}

/* The others keep their order, too. */
TEST(a_task_that_is_first_waits_for_first_ones_only)
{
	int n = 0;

	most = 1;
	done = 0;
	atomic_store(&worked, 0);
	assert_ok(loop_open(&loop));
	assert_ok(helpers_open(&helpers, loop, "helper", 1));
	/* The only thread is busy with one, until all are there. */
	atomic_store(&held, true);
	for (int j = 0; j < TASKS; j++) {
		task[j].task = (struct helpers_task){
			.work = work, .done = first_done, .first = j % 3 == 1
		};
		helpers_ask(helpers, &task[j].task);
		while (j == 0 && atomic_load(&working) == 0)
			continue;
	}
	atomic_store(&held, false);
	loop_run(loop);
	assert_int_equal(task[0].number, n++);
	for (int j = 1; j < TASKS; j += 3)
		assert_int_equal(task[j].number, n++);
	for (int j = 1; j < TASKS; j++)
		if (j % 3 != 1)
			assert_int_equal(task[j].number, n++);
	helpers_close(helpers);
	loop_close(loop);
}
