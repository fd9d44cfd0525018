/*
 * Addresses of TCP, as the configuration has checked them.
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdio.h>
#include <string.h>

#define ADDRESS_HOST 256

/* Splits host:port, or [address]:port.  Returns the port. */
static inline const char *
address_split(const char *where, char host[ADDRESS_HOST])
{
	const char *port = strrchr(where, ':');
	const int brackets = *where == '[';

	snprintf(host, ADDRESS_HOST, "%.*s", (int)(port - where) - 2 * brackets,
	    where + brackets);
	return port + 1;
}

#endif
