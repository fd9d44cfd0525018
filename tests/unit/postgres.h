/*
 * Real PostgreSQL servers for a test, by tests/unit/postgres.py.  Included by
 * tests only.
 */
#ifndef POSTGRES_H
#define POSTGRES_H

#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

#include "cases.h"

static FILE *commands, *answers;
static pid_t servers;

/* Gives a command, and returns the answer, which lives until this thread's next
 * call. */
static const char *
control(const char *, ...) __attribute__((unused, format(printf, 1, 2)));

static const char *
control(const char *format, ...)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static _Thread_local char line[4096];
	va_list ap;

	pthread_mutex_lock(&mutex);
	va_start(ap, format);
	vfprintf(commands, format, ap);
	va_end(ap);
	fputc('\n', commands);
	fflush(commands);
	if (fgets(line, sizeof(line), answers) == NULL)
		snprintf(line, sizeof(line), "the servers have ended");
	pthread_mutex_unlock(&mutex);
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "ok ", 3) != 0)
		fail_msg("%s: %s", format, line);
	return line + 3;
}

static UNUSED int
start_servers(UNUSED void **state)
{
	const char *srcdir = getenv("srcdir");
	char script[512];
	int in[2], out[2];

	log_set_level(LOG_ERROR + 1);
	snprintf(script, sizeof(script), "%s/tests/unit/postgres.py",
	    srcdir != NULL ? srcdir : "..");
	/* The servers end when their input does, which nobody else may hold. */
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 ||
	    (servers = fork()) == -1)
		return -1;
	if (servers == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execlp("python3", "python3", "-B", script, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	commands = fdopen(in[1], "w");
	answers = fdopen(out[0], "r");
	return commands != NULL && answers != NULL ? 0 : -1;
}

/* One server, for the store's tests. */
static UNUSED int
setup_server(void **state)
{
	if (start_servers(state) != 0)
		return -1;
	setenv("ONCEWRAP_MODULES", ".", 0);
	return setenv("TEST_DATABASE", control("make server"), 1);
}

/* At the server named primary. */
static UNUSED void
sql(const char *text)
{
	(void)control("primary sql %s", text);
}

static UNUSED long
number(const char *text)
{
	return strtol(control("primary sql %s", text), NULL, 10);
}

static UNUSED int
stop_servers(UNUSED void **state)
{
	int status;

	fclose(commands);
	fclose(answers);
	return waitpid(servers, &status, 0) == servers && status == 0 ? 0 : -1;
}

#endif
