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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char armed[64]; /* "": none */
static int sig = SIGKILL;
static atomic_ulong left; /* passages until then */
static atomic_bool early; /* they are not counted yet */
static atomic_uint stops;

static void
fault_arm(void)
{
	const char *text = getenv("ONCEWRAP_FAULT");
	char *end;

	if (text == NULL || *text == '\0')
		return;
	(void)snprintf(
	    armed, sizeof(armed), "%.*s", (int)strcspn(text, ":"), text);
	atomic_store(&left, 1);
	if ((end = strchr(text, ':')) == NULL)
		return;
	atomic_store(&early, end[1] == '+');
	atomic_store(&left, strtoul(end + 1, &end, 10));
	if (strcmp(end, ":stop") == 0)
		sig = SIGSTOP;
	else if (*end != '\0' || atomic_load(&left) == 0) {
		fprintf(stderr, "ONCEWRAP_FAULT=%s: not understood\n", text);
		_exit(2);
	}
}

void
fault_pass(const char *point)
{
	(void)pthread_once(&once, fault_arm);
	if (armed[0] == '\0')
		return;
	if (strcmp(point, "STORE_OPENED") == 0)
		atomic_store(&early, false);
	if (strcmp(point, armed) != 0 || atomic_load(&early) ||
	    atomic_load(&left) == 0 || atomic_fetch_sub(&left, 1) != 1)
		return;
	/* The signal goes to this thread: another thread could take it
	 * later. */
	atomic_fetch_add(&stops, 1);
	(void)raise(sig);
	atomic_fetch_add(&stops, 1);
	while (sig == SIGKILL) /* this thread goes no further */
		(void)pause();
}

unsigned
fault_stops(void)
{
	return atomic_load(&stops);
}

#endif
