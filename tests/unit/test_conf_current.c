/*
 * conf_current: a configuration that is replaced lives while a request uses
 * it.
 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conf_current.h"

#define READERS 4
#define ROUNDS  2000

static struct conf *
parse(const char *text)
{
	struct conf_error err;
	struct conf *conf = conf_parse("f", text, strlen(text), &err);

	assert_non_null(conf);
	return conf;
}

static void
replaced_one_lives_while_it_is_used(void **state)
{
	struct conf_current *box =
	    conf_current_new(parse("[server]\nworkers = 1\n"));
	struct conf *old, *new;

	(void)state;
	assert_non_null(box);
	old = conf_current_get(box);
	conf_current_set(box, parse("[server]\nworkers = 2\n"));
	new = conf_current_get(box);
	assert_int_equal(old->workers, 1);
	assert_int_equal(new->workers, 2);
	conf_unref(old);
	conf_current_free(box);
	assert_int_equal(new->workers, 2);
	conf_unref(new);
	conf_current_free(NULL);
}

/* Counts the configurations that were not whole. */
static void *
read_all_the_time(void *arg)
{
	struct conf_current *box = arg;
	uintptr_t wrong = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct conf *conf = conf_current_get(box);

		if (conf->nroutes != 1 ||
		    conf->workers != conf->routes[0].key_max_length)
			wrong++;
		conf_unref(conf);
	}
	return (void *)wrong;
}

static void
readers_see_whole_configurations_while_it_is_replaced(void **state)
{
	static const char *const texts[] = {
		"[server]\nworkers = 7\n[route /a]\nkey_max_length = 7\n",
		"[server]\nworkers = 9\n[route /b]\nkey_max_length = 9\n",
	};
	struct conf_current *box = conf_current_new(parse(texts[0]));
	pthread_t readers[READERS];

	(void)state;
	assert_non_null(box);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(
		    pthread_create(&readers[i], NULL, read_all_the_time, box),
		    0);
	for (int i = 0; i < ROUNDS / 10; i++)
		conf_current_set(box, parse(texts[i % 2]));
	for (int i = 0; i < READERS; i++) {
		void *wrong;

		assert_int_equal(pthread_join(readers[i], &wrong), 0);
		assert_null(wrong);
	}
	conf_current_free(box);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced_one_lives_while_it_is_used),
		cmocka_unit_test(
		    readers_see_whole_configurations_while_it_is_replaced),
	};

	return cmocka_run_group_tests_name("conf_current", tests, NULL, NULL);
}
