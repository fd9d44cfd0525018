/*
 * Fault points: see fault.h.  The environment is read once, at the first
 * passage of any point.  An invalid value ends the process, because a test
 * that waits for a death must not wait for ever.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"

#ifdef FAULT_POINTS

static const char *const names[] = {
#define FAULT_NAME(name) #name,
	FAULT_LIST(FAULT_NAME)
#undef FAULT_NAME
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int armed = -1; /* an enum fault_point */
static int sig = SIGKILL;
static atomic_ulong left; /* passages until then */
static atomic_bool early; /* they are not counted yet */

static void
arm(void)
{
	const char *text = getenv("ONCEWRAP_FAULT");
	char *end;
	size_t n, i;

	if (text == NULL || *text == '\0')
		return;
	n = strcspn(text, ":");
	for (i = 0; i < FAULT_NPOINTS; i++) {
		if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0)
			armed = (int)i;
	}
	atomic_store(&left, 1);
	end = strchr(text, ':');
	if (end != NULL) {
		atomic_store(&early, end[1] == '+');
		atomic_store(&left, strtoul(end + 1, &end, 10));
		if (strcmp(end, ":stop") == 0)
			sig = SIGSTOP;
		else if (*end != '\0')
			armed = -1;
	}
	if (armed == -1 || atomic_load(&left) == 0) {
		fprintf(stderr, "ONCEWRAP_FAULT=%s: no such point\n", text);
		_exit(2);
	}
}

void
fault_pass(enum fault_point point)
{
	(void)pthread_once(&once, arm);
	if (point == FAULT_STORE_OPENED)
		atomic_store(&early, false);
	if ((int)point != armed || atomic_load(&early) ||
	    atomic_load(&left) == 0 || atomic_fetch_sub(&left, 1) != 1)
		return;
	/* The signal goes to this thread: another thread could take it
	 * later. */
	(void)raise(sig);
	while (sig == SIGKILL) /* this thread goes no further */
		(void)pause();
}

#endif
