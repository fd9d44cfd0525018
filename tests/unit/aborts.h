/*
 * A child that an assertion may end.  Included by tests only, after cases.h.
 */
#ifndef ABORTS_H
#define ABORTS_H

#include <sys/resource.h>
#include <sys/wait.h>

#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/* Whether the build has the checks that end a program. */
#ifdef RECORD_CHECKS
#define HAS_CHECKS true
#else
#define HAS_CHECKS false
#endif

/* Whether a child that does that aborts; if not, it must return 0. */
static UNUSED bool
aborts(int (*act)(const void *), const void *arg)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(SIGABRT, SIG_DFL);
		(void)close(STDERR_FILENO); /* what assert() says */
		_exit(act(arg));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGABRT);
	else
		assert_int_equal(status, 0);
	return WIFSIGNALED(status);
}

#endif
