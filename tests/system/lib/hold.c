/*
 * A library to preload: the thread that makes room for a large JSON body waits
 * at the gate whose FIFOs are HOLD_GATE.here and HOLD_GATE.open.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGE ((size_t)8 << 20)

static int
end_of_gate(const char *end, int flags)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", getenv("HOLD_GATE"), end);
	return open(path, flags | O_CLOEXEC);
}

static void
hold(void)
{
	int here = end_of_gate(".here", O_WRONLY);
	int way = end_of_gate(".open", O_RDONLY);
	char c;

	dprintf(here, "%d\n", (int)getpid());
	if (read(way, &c, 1) != 1)
		abort();
	close(here);
	close(way);
}

void *
reallocarray(void *p, size_t n, size_t size)
{
	void *(*real)(void *, size_t, size_t) =
	    dlsym(RTLD_NEXT, "reallocarray");

	if (n * size >= LARGE && getenv("HOLD_GATE") != NULL)
		hold();
	return real(p, n, size);
}
