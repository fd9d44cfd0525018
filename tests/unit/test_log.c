/*
 * log: one event is one line, whatever its values hold.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

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

/* Takes the time off the front of each line. */
static const char *
without_times(void)
{
	char *from = output, *to = output, *end;
	int length;

	while (*from != '\0') {
		length = 0;
		assert_int_equal(sscanf(from,
				     "ts=%*4d-%*2d-%*2dT%*2d:%*2d:%*2d.%*3dZ "
				     "%nlevel",
				     &length),
		    0);
		assert_int_equal(length, 28);
		from += length;
		assert_non_null(end = strchr(from, '\n'));
		memmove(to, from, (size_t)(end - from) + 1);
		to += end - from + 1;
		from = end + 1;
	}
	*to = '\0';
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
	{ "separators of lines", "\342\200\250\342\200\251",
	    "v=\"\\xe2\\x80\\xa8\\xe2\\x80\\xa9\"" },
	{ "characters that change the order of others",
	    "\342\200\256a\342\201\246\342\200\216",
	    "v=\"\\xe2\\x80\\xaea\\xe2\\x81\\xa6\\xe2\\x80\\x8e\"" },
	{ "their neighbours", "\342\200\247\342\200\257\342\201\252",
	    "v=\"\342\200\247\342\200\257\342\201\252\"" },
	{ "a byte that is no UTF-8", "\377", "v=\"\\xff\"" },
	{ "a sequence that is cut", "\342\202", "v=\"\\xe2\\x82\"" },
	{ "an overlong sequence", "\300\257", "v=\"\\xc0\\xaf\"" },
	{ "an overlong sequence of three", "\340\200\257",
	    "v=\"\\xe0\\x80\\xaf\"" },
	{ "a surrogate", "\355\240\200", "v=\"\\xed\\xa0\\x80\"" },
	{ "above U+10FFFF", "\364\220\200\200", "v=\"\\xf4\\x90\\x80\\x80\"" },
};

TEST(values)
{
	char expected[256];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		begin();
		log_event(LOG_INFO, "test", NULL, LOG_S("v", rows[i].value));
		end();
		without_times();
		snprintf(expected, sizeof(expected),
		    "level=info event=test %s\n", rows[i].line);
		if (strcmp(output, expected) != 0)
			fail_msg("%s: %s", rows[i].name, output);
	}
}

TEST(a_whole_line)
{
	begin();
	log_event(LOG_WARN, "handler-failed", NULL, LOG_S("why", "x"),
	    LOG_I("exit", -3), LOG_I("n", INT64_MAX));
	end();
	assert_string_equal(without_times(),
	    "level=warn event=handler-failed why=x "
	    "exit=-3 n=9223372036854775807\n");
}

TEST(a_request_is_named_in_full)
{
	struct log_request rq = { .instance = "urn:uuid:1",
		.method = "POST",
		.path = "/a b",
		.peer = "192.0.2.7" };
	struct log_request copy = { .instance = NULL };

	begin();
	log_values(LOG_INFO, "test", &rq, NULL, 0);
	log_request_key(&rq, "k=1");
	memcpy(rq.scope, "01234567", 9);
	rq.status = 201;
	log_request_copy(&copy, &rq);
	log_event(LOG_INFO, "test", &copy, LOG_I("n", 1));
	rq.method = rq.peer = NULL;
	log_values(LOG_INFO, "test", &rq, NULL, 0);
	rq.instance = rq.path = NULL;
	rq.status = 0;
	log_event(LOG_INFO, "test", &rq, LOG_I("n", 2));
	log_request_copy(&copy, &rq);
	log_request_clear(&rq);
	assert_null(rq.key);
	copy.status = 500;
	log_values(LOG_INFO, "test", &copy, NULL, 0);
	log_request_clear(&copy);
	log_request_copy(&copy, &rq);
	log_values(LOG_INFO, "test", &copy, NULL, 0);
	log_request_clear(&copy);
	end();
	assert_string_equal(without_times(),
	    "level=info event=test instance=urn:uuid:1 method=POST "
	    "path=\"/a b\" peer=192.0.2.7 key=\"\" scope=- status=-\n"
	    "level=info event=test instance=urn:uuid:1 method=POST "
	    "path=\"/a b\" peer=192.0.2.7 key=\"k=1\" scope=01234567 "
	    "status=201 n=1\n"
	    "level=info event=test instance=urn:uuid:1 method=- "
	    "path=\"/a b\" peer=- key=\"k=1\" scope=01234567 status=201\n"
	    "level=info event=test path=- key=\"k=1\" scope=01234567 n=2\n"
	    "level=info event=test path=- key=\"k=1\" scope=01234567 "
	    "status=500\n"
	    "level=info event=test path=- key=\"\" scope=-\n");
}

TEST(levels_below_are_dropped)
{
	begin();
	log_event(LOG_DEBUG, "unseen", NULL, LOG_I("n", 1));
	log_set_level(LOG_ERROR);
	log_event(LOG_WARN, "unseen", NULL, LOG_I("n", 1));
	log_event(LOG_ERROR, "seen", NULL, LOG_I("n", 1));
	log_set_level(LOG_DEBUG);
	log_event(LOG_DEBUG, "too", NULL, LOG_I("n", 2));
	log_set_level(LOG_INFO);
	end();
	assert_string_equal(without_times(),
	    "level=error event=seen n=1\nlevel=debug event=too n=2\n");
}

/* Of every length around the limit: one line, closed quotes, whole escapes. */
TEST(long_lines_are_cut)
{
	char *value = malloc(2 * LOG_LINE_MAX);
	size_t length, n, i;

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

/* These are the client's choice, and must not hide the rest. */
TEST(a_long_path_method_peer_and_key_hide_nothing)
{
	char path[8001], key[4097];
	struct log_request rq = { .instance = "urn:uuid:1",
		.method = path,
		.path = path,
		.peer = path,
		.key = key,
		.scope = "01234567",
		.status = 201 };
	static const char fills[] = "a\001";

	for (size_t i = 0; i < 2; i++) {
		memset(path, fills[i], sizeof(path) - 1);
		path[sizeof(path) - 1] = '\0';
		memset(key, fills[i], sizeof(key) - 1);
		key[sizeof(key) - 1] = '\0';
		begin();
		log_event(LOG_INFO, "test", &rq, LOG_I("n", 1));
		end();
		assert_non_null(strstr(output, "...\" path=\""));
		assert_non_null(strstr(output, "...\" peer=\""));
		assert_non_null(strstr(output, "...\" key=\""));
		assert_non_null(
		    strstr(output, "...\" scope=01234567 status=201 n=1\n"));
		assert_true(strlen(output) < LOG_LINE_MAX - 400);
	}
	/* The longest key of the default is whole. */
	key[255] = '\0';
	begin();
	log_event(LOG_INFO, "test", &rq, LOG_I("n", 1));
	end();
	assert_non_null(strstr(output, "\\x01\" scope=01234567"));
}

/* After the tests of lines: the one that is lost is told of later. */
TEST(errno_stays)
{
	begin();
	close(STDERR_FILENO);
	errno = ENOSPC;
	log_event(LOG_ERROR, "test", NULL, LOG_I("n", 1));
	assert_int_equal(errno, ENOSPC);
	end();
}

/* A process that ends by an assertion, with that as its stderr. */
static void
assert_dies(int fd)
{
	pid_t pid = fork();
	int status;

	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		alarm(20);
		dup2(fd, STDERR_FILENO);
		if (log_start() != 0)
			_exit(1);
		/* What glibc does for a failed assertion. */
		fprintf(stderr, "Assertion `%s' failed.\n", output);
		(void)signal(SIGABRT, SIG_DFL);
		abort();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* Until not a byte more fits. */
static void
fill(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
	memset(output, 'x', sizeof(output) - 1);
	while (write(fd, output, sizeof(output) - 1) > 0)
		;
	while (write(fd, output, 1) > 0)
		;
	assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
}

TEST(an_assertion_whose_message_is_not_read_ends_the_process)
{
	char stream[64];
	struct stat st;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	fill(ends[1]);
	assert_dies(ends[1]);
	/* The description that other processes may share is as it was. */
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
	close(ends[0]);
	close(ends[1]);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(fstat(ends[1], &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	fill(ends[1]);
	assert_dies(ends[1]);
	unsetenv("JOURNAL_STREAM");
	close(ends[0]);
	close(ends[1]);
}
