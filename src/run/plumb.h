/*
 * The descriptors between us and a handler.  All are close-on-exec; -1 and
 * errno on failure.
 */
#ifndef PLUMB_H
#define PLUMB_H

#include <stddef.h>

/*
 * The body as a file at its beginning, which is the caller's to close.  fd is
 * the file that holds it already, or -1; it is opened again, to be read only:
 * what the handler does to its stdin must not reach ours.
 */
int plumb_body(const void *body, size_t len, int fd);

/* A pipe whose reading end, fds[0], does not block. */
int plumb_pipe(int fds[2]);

/* Closes those of n that are not -1. */
void plumb_close(const int *fds, size_t n);

#endif
