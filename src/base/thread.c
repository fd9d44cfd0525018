/*
 * Starts threads.
 */
#include "config.h"

#include <assert.h>
#include <signal.h>

#include "thread.h"

int
thread_start(pthread_t *thread, const char *name, size_t stack,
    void *(*thread_main)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int error;

	if ((error = pthread_attr_init(&attr)) != 0)
		return error;
	if (stack != THREAD_STACK)
		error = pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* see db_log.c */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (error == 0)
		error = pthread_create(thread, &attr, thread_main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	/* A name has at most 15 bytes. */
	if (error == 0)
		(void)pthread_setname_np(*thread, name);
	return error;
}
