/*
 * Threads of this process.  src/README has the list of them.
 */
#ifndef THREAD_H
#define THREAD_H

#include <stddef.h>

#include <pthread.h>

/* The system's default size of a stack. */
#define THREAD_STACK 0

/*
 * Starts a thread with that name, which `ps -L` shows, and with that size of
 * its stack (bytes).  The thread gets no signals: the main thread takes them
 * all.  Returns 0, or an errno value.
 */
int thread_start(pthread_t *thread, const char *name, size_t stack,
    void *(*thread_main)(void *arg), void *arg);

#endif
