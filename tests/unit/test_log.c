/*
 * log: one event is one line, whatever its values hold.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"

static char output[2 * LOG_LINE_MAX];
static int saved_stderr, out[2];

static void
begin(void)
{
	assert_int_equal(pipe(out), 0);
	saved_stderr = dup(STDERR_FILENO);
	dup2(out[1], STDERR_FILENO);
	close(out[1]);
}

static const char *
end(void)
{
	ssize_t n;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	n = read(out[0], output, sizeof(output) - 1);
	assert_true(n >= 0);
	output[n] = '\0';
	close(out[0]);
	return output;
}

static const struct row {
	const char *name, *value, *line;
} rows[] = {
	{ "a word", "word", "v=word" },
	{ "nothing", "", "v=\"\"" },
	{ "no text", NULL, "v=\"\"" },
	{ "blanks", "two words", "v=\"two words\"" },
	{ "quotes", "say \"no\"", "v=\"say \\\"no\\\"\"" },
	{ "a backslash", "a\\b", "v=\"a\\\\b\"" },
	{ "an equals sign", "a=b", "v=\"a=b\"" },
	{ "a line break, which forges no line", "a\nlevel=error",
	    "v=\"a\\nlevel=error\"" },
	{ "a tab and a return", "\t\r", "v=\"\\t\\x0d\"" },
	{ "an escape sequence", "\033[2J", "v=\"\\x1b[2J\"" },
	{ "delete", "a\177", "v=\"a\\x7f\"" },
	{ "UTF-8", "Z\303\274rich", "v=\"Z\303\274rich\"" },
	{ "UTF-8 of three and four bytes", "\342\202\254\360\237\230\200",
	    "v=\"\342\202\254\360\237\230\200\"" },
	{ "a C1 control", "\302\233", "v=\"\\xc2\\x9b\"" },
	{ "a byte that is no UTF-8", "\377", "v=\"\\xff\"" },
	{ "a sequence that is cut", "\342\202", "v=\"\\xe2\\x82\"" },
	{ "an overlong sequence", "\300\257", "v=\"\\xc0\\xaf\"" },
	{ "an overlong sequence of three", "\340\200\257",
	    "v=\"\\xe0\\x80\\xaf\"" },
	{ "a surrogate", "\355\240\200", "v=\"\\xed\\xa0\\x80\"" },
	{ "above U+10FFFF", "\364\220\200\200", "v=\"\\xf4\\x90\\x80\\x80\"" },
};

static void
values(void **state)
{
	char expected[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		log_event(LOG_INFO, "test", NULL, LOG_S("v", rows[i].value));
		end();
		snprintf(expected, sizeof(expected),
		    "level=info event=test %s\n", rows[i].line);
		if (strcmp(output, expected) != 0)
			fail_msg("%s: %s", rows[i].name, output);
	}
}

static void
a_whole_line(void **state)
{
	(void)state;
	begin();
	log_event(LOG_WARN, "handler-failed", "urn:uuid:1", LOG_S("why", "x"),
	    LOG_I("exit", -3), LOG_I("n", INT64_MAX));
	assert_string_equal(end(),
	    "level=warn event=handler-failed instance=urn:uuid:1 why=x "
	    "exit=-3 n=9223372036854775807\n");
}

static void
levels_below_are_dropped(void **state)
{
	(void)state;
	begin();
	log_event(LOG_DEBUG, "unseen", NULL, LOG_I("n", 1));
	log_set_level(LOG_ERROR);
	log_event(LOG_WARN, "unseen", NULL, LOG_I("n", 1));
	log_event(LOG_ERROR, "seen", NULL, LOG_I("n", 1));
	log_set_level(LOG_DEBUG);
	log_event(LOG_DEBUG, "too", NULL, LOG_I("n", 2));
	log_set_level(LOG_INFO);
	assert_string_equal(
	    end(), "level=error event=seen n=1\nlevel=debug event=too n=2\n");
}

/* Of every length around the limit: one line, closed quotes, whole escapes. */
static void
long_lines_are_cut(void **state)
{
	char *value = malloc(2 * LOG_LINE_MAX);
	size_t length, n, i;

	(void)state;
	assert_non_null(value);
	for (length = LOG_LINE_MAX - 60; length < LOG_LINE_MAX + 20; length++) {
		memset(value, 'a', length);
		for (i = 3; i < length; i += 7)
			value[i] = i % 2 == 0 ? '\001' : '"';
		value[length] = '\0';
		begin();
		log_event(LOG_INFO, "test", NULL, LOG_S("v", value),
		    LOG_S("last", "value"));
		end();
		n = strlen(output);
		assert_true(n <= LOG_LINE_MAX);
		assert_ptr_equal(strchr(output, '\n'), output + n - 1);
		assert_memory_equal(output + n - 5, "...\"\n", 5);
		assert_true(n > LOG_LINE_MAX - 10);
	}
	/* also one that needs no quotes until it is cut */
	memset(value, 'a', LOG_LINE_MAX);
	value[LOG_LINE_MAX] = '\0';
	begin();
	log_event(LOG_INFO, "test", NULL, LOG_S("v", value));
	end();
	assert_int_equal(strlen(output), LOG_LINE_MAX);
	assert_non_null(strstr(output, "v=\"aaaa"));
	assert_memory_equal(output + LOG_LINE_MAX - 5, "...\"\n", 5);
	free(value);
}

static void
errno_stays(void **state)
{
	(void)state;
	begin();
	close(STDERR_FILENO);
	errno = ENOSPC;
	log_event(LOG_ERROR, "test", NULL, LOG_I("n", 1));
	assert_int_equal(errno, ENOSPC);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(a_whole_line),
		cmocka_unit_test(levels_below_are_dropped),
		cmocka_unit_test(long_lines_are_cut),
		cmocka_unit_test(errno_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
