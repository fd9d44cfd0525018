/*
 * A library to preload: a name service that is stuck.  While there is a file
 * with the name that NAMES_HANG has, no name of a host or user is found; a byte
 * in it says that one is looked for.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
hang(void)
{
	const char *name = getenv("NAMES_HANG");
	int hangs;

	while (
	    name != NULL && (hangs = open(name, O_WRONLY | O_APPEND)) != -1) {
		(void)!write(hangs, "x", 1);
		close(hangs);
		usleep(2000);
	}
}

int
getpwnam_r(const char *name, struct passwd *pw, char *room, size_t size,
    struct passwd **found)
{
	void *symbol = dlsym(RTLD_NEXT, "getpwnam_r");
	int (*real)(
	    const char *, struct passwd *, char *, size_t, struct passwd **);

	memcpy(&real, &symbol, sizeof(real));
	hang();
	return real(name, pw, room, size, found);
}

int
getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
    struct addrinfo **found)
{
	void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
	int (*real)(const char *, const char *, const struct addrinfo *,
	    struct addrinfo **);

	memcpy(&real, &symbol, sizeof(real));
	hang();
	return real(host, port, hints, found);
}
