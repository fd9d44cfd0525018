/*
 * The descriptors between this process and a handler.  All are close-on-exec.
 * On failure the result is -1, with errno set.
 */
#ifndef PLUMB_H
#define PLUMB_H

#include <stddef.h>

/*
 * Returns a file with the body, at its beginning; the caller closes it.  fd is
 * the file that holds the body already, or -1.  That file is opened again for
 * reading only: the handler's use of its stdin must not change our descriptor.
 */
int plumb_body(const void *body, size_t len, int fd);

/* Makes a pipe.  Its reading end, fds[0], does not block. */
int plumb_pipe(int fds[2]);

/* Closes the descriptors that are not -1, of n. */
void plumb_close(const int *fds, size_t n);

#endif
