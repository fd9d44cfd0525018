/*
 * attention: hostile texts and bounded memory.  Who is told of what, and when,
 * is for the system tests.
 */
#include "config.h"

#include "cases.h"

#include <unistd.h>

#include "attention.h"
#include "clock.h"
#include "conf_fixture.h"
#include "json_member.h"
#include "run.h"

#define TOLD "attention.told"

static char folder[4096];
static cJSON *lines; /* that were told */

/* A configuration whose program begins so, and then writes what it is told. */
static struct conf *
configure(const char *begin)
{
	char text[8192];
	struct conf *conf;

	assert_non_null(getcwd(folder, sizeof(folder)));
	snprintf(text, sizeof(text),
	    "[server]\ndatabase = x\nattention_interval = 1h\n"
	    "on_attention = /bin/sh -c \"cd '%s' && %s cat >>%s\"\n",
	    folder, begin, TOLD);
	(void)remove(TOLD);
	conf = conf_from(text);
	attention_configure(conf, NULL);
	return conf;
}

/* What was told; the caller frees it. */
static char *
told(void)
{
	FILE *file = fopen(TOLD, "r");
	char *text = calloc(1, 4 * 1024 * 1024);
	size_t n;

	assert_non_null(text);
	if (file == NULL)
		return text;
	n = fread(text, 1, 4 * 1024 * 1024 - 1, file);
	text[n] = '\0';
	(void)fclose(file);
	return text;
}

/* The lines, each of which is an object; the caller deletes the array. */
static cJSON *
parse(const char *text)
{
	cJSON *array = cJSON_CreateArray(), *line;
	const char *end;

	for (; *text != '\0'; text = end + 1) {
		line = cJSON_ParseWithOpts(text, &end, 0);
		assert_non_null(line);
		assert_int_equal(*end, '\n');
		cJSON_AddItemToArray(array, line);
	}
	return array;
}

static const cJSON *
line(int n)
{
	return cJSON_GetArrayItem(lines, n);
}

/* Ends it, as a daemon does; the lines are what was told.  How many. */
static int
end(struct conf *conf)
{
	char *text;

	attention_end(conf, 10000);
	conf_unref(conf);
	text = told();
	lines = parse(text);
	free(text);
	return cJSON_GetArraySize(lines);
}

static const struct log_request key = { .instance = "urn:uuid:1",
	.path = "/pay",
	.key = "k\"\n\xff",
	.scope = "01234567" };

TEST(a_key_may_hold_any_bytes)
{
	struct conf *conf = configure("");

	attention_key(RECORD_UNKNOWN, &key, "it was killed");
	attention_key(RECORD_DEAD_LETTER, NULL, NULL);
	assert_int_equal(end(conf), 2);
	assert_string_equal(text(line(0), "key"), "k\"\n\xef\xbf\xbd");
	assert_int_equal(strlen(text(line(0), "ts")), 24);
	assert_string_equal(text(line(1), "event"), "dead_letter");
	assert_string_equal(text(line(1), "key"), "(none)");
}

TEST(refusals_are_counted_by_caller)
{
	struct conf *conf = configure("");
	const struct attention_refusal open = { "too-many-keys",
		"max_open_keys", "/pay", "192.0.2.7", NULL };
	const struct attention_refusal other = { "too-many-keys",
		"max_open_keys", "/pay", "192.0.2.8", NULL };

	attention_refused(&open);
	attention_refused(&other);
	attention_refused(&open);
	assert_int_equal(end(conf), 2);
	assert_string_equal(text(line(0), "route"), "/pay");
	assert_string_equal(text(line(0), "caller"), "192.0.2.7");
	assert_int_equal(number(line(0), "requests"), 2);
	assert_int_equal(number(line(1), "requests"), 1);
}

TEST(a_crowd_of_keys_and_callers_is_counted)
{
	enum { KEYS = 100000, CALLERS = 1000 };
	struct conf *conf = configure("");
	char caller[16];
	const struct attention_refusal rate = { "too-many-keys", "key_rate",
		"/", caller, NULL };
	int n;

	for (int i = 0; i < KEYS; i++)
		attention_key(RECORD_UNKNOWN, &key, "why");
	for (int i = 0; i < CALLERS; i++) {
		snprintf(caller, sizeof(caller), "c%d", i);
		attention_refused(&rate);
	}
	n = end(conf);
	assert_in_range(n, 1000, 4000);
	assert_string_equal(text(line(n - 2), "caller"), "c63");
	assert_string_equal(text(line(n - 1), "event"), "more");
	assert_int_equal(
	    number(line(n - 1), "number"), KEYS + CALLERS - (n - 1));
}

/* Runs the program as the scheduler does. */
static void
run_now(struct conf *conf)
{
	int64_t wake = INT64_MAX;
	void *item;

	while (attention_kind.next(NULL, conf, &item, &wake) != RC_OK)
		assert_true(wake < clock_mono() + 10000);
	attention_kind.run(NULL, conf, item);
}

TEST(what_fails_again_and_again_takes_bounded_memory)
{
	struct conf *conf = configure("test -e attention.go || exit 3;");
	int n;

	conf->attention_interval = 0;
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 20000; i++)
			attention_key(RECORD_UNKNOWN, &key, "why");
		run_now(conf);
	}
	fclose(fopen("attention.go", "w"));
	n = end(conf);
	(void)remove("attention.go");
	assert_in_range(n, 1000, 10000);
}

static int
forget(UNUSED void **state)
{
	cJSON_Delete(lines);
	lines = NULL;
	return 0;
}

AROUND_EACH(NULL, forget)

static int
begin_group(UNUSED void **state)
{
	return run_init() == RC_OK ? 0 : -1;
}

static int
end_group(UNUSED void **state)
{
	(void)remove(TOLD);
	return 0;
}

GROUP(begin_group, end_group)
