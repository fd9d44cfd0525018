/*
 * A thread of its own waits for the end, because the other threads may wait for
 * a disk, a lock or a server, for any time.  To the store this end is a crash:
 * what is not recorded counts as lost.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "thread.h"
#include "stop.h"

/* Time (us) for the last line to reach the reader of the log. */
#define LAST_LINE 50000

static int64_t until;

static void *
stop_main(void *unused)
{
	struct timespec ts;
	sigset_t signals;
	int64_t left;

	(void)unused;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	while ((left = until - clock_mono()) > 0) {
		ts.tv_sec = (time_t)(left / 1000);
		ts.tv_nsec = (long)(left % 1000) * 1000000;
		if (sigtimedwait(&signals, NULL, &ts) != -1)
			_exit(EXIT_SUCCESS);
	}
	log_event(LOG_WARN, "stop-forced", NULL,
	    LOG_S("note",
		"drain_timeout is over: what is not recorded by now counts as "
		"lost"));
	usleep(LAST_LINE);
	_exit(EXIT_SUCCESS);
}

void
stop_bound(int64_t drained_mono)
{
	pthread_t thread;
	int error;

	until = drained_mono + STOP_GRACE;
	error = thread_start(&thread, "stop", THREAD_STACK, stop_main, NULL);
	if (error == 0)
		(void)pthread_detach(thread);
	else
		log_event(LOG_ERROR, "thread-not-started", NULL,
		    LOG_S("why", strerror(error)));
}
