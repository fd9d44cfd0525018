/*
 * Runs in threads that may wait: each has a loop of its own, which the thread
 * serves while it waits.
 */
#ifndef RUN_WAIT_H
#define RUN_WAIT_H

#include "run.h"

/* Waits until the run, which may be NULL, is reached, and sends nothing yet.
 * NULL: it has not been started. */
struct run *run_wait_begin(struct run *run, struct run_facts *facts);

/* Reads the next bytes of the output: > 0.  0: there are no more. */
size_t run_wait_read(struct run *run, void *p, size_t size);

/* Waits for the end of the run, and frees it. */
void run_wait_finish(struct run *run, struct run_facts *facts);

/* run_wait_read() until the end into a spool, then run_wait_finish().  If the
 * spool failed, the facts say so: RUN_CAPTURE_FAILED. */
void
run_wait_capture(struct run *run, struct spool *spool, struct run_facts *facts);

/* run_cancel(). */
void run_wait_cancel(struct run *run);

/* Connects to a FastCGI application, "unix:/path" or "tcp:host:port", until
 * until (clock_mono() ms).  -1 with an errno value and a text. */
int run_wait_connect(
    const char *address, int64_t until, int *error, const char **why);

#endif
