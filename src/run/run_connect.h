/*
 * A connection to a FastCGI application.
 */
#ifndef RUN_CONNECT_H
#define RUN_CONNECT_H

#include <stdint.h>

/* Connects to "unix:/path" or "tcp:host:port" until until (clock_mono() ms),
 * or until all runs are to be ended.  -1 with an errno value and a text. */
int
run_connect(const char *address, int64_t until, int *error, const char **why);

#endif
