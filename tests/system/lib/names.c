/*
 * A library to preload: a name service that is stuck.  While there is a file
 * with the name that NAMES_HANG has, no name is found; a byte in it says that
 * one is looked for.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
    struct addrinfo **found)
{
	void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
	int (*real)(const char *, const char *, const struct addrinfo *,
	    struct addrinfo **);
	const char *name = getenv("NAMES_HANG");
	int hangs;

	memcpy(&real, &symbol, sizeof(real));
	while (
	    name != NULL && (hangs = open(name, O_WRONLY | O_APPEND)) != -1) {
		(void)!write(hangs, "x", 1);
		close(hangs);
		usleep(2000);
	}
	return real(host, port, hints, found);
}
