/*
 * Pools and processes, for this room alone.  A run reads the child, the lock
 * and .err of a process that it has.
 */
#ifndef WORKERS_IMPL_H
#define WORKERS_IMPL_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "child.h"
#include "conf.h"
#include "errlog.h"
#include "lock.h"
#include "workers.h"

enum workers_state {
	WORKERS_NEW,    /* to be started, or being started */
	WORKERS_FREE,   /* in its pool's list of free ones */
	WORKERS_BUSY,   /* a run has it */
	WORKERS_SPENT,  /* gets no more requests: the spawner is to end it */
	WORKERS_ENDING, /* SIGTERM was sent; SIGKILL follows at the deadline */
	WORKERS_KILLED, /* SIGKILL was sent; it is given up at the deadline */
	WORKERS_GONE    /* reaped or given up: only its lock is left */
};

struct workers_process {
	struct workers_process *next;      /* of its pool */
	struct workers_process *next_free; /* WORKERS_FREE */
	struct workers_pool *pool;
	struct conf *conf; /* a reference: owns *program */
	const struct conf_program *program;
	enum workers_state state;
	struct workers_ask *user;     /* WORKERS_BUSY */
	struct loop_message news;     /* of it, to the loop of its run */
	struct workers_loop *told_to; /* news are on the way; NULL: none */
	struct child child;
	int listener;      /* this process's descriptor of its socket */
	int address;       /* of the socket's file (O_PATH) */
	int err;           /* the reading end of its descriptors 1 and 2 */
	int64_t lock;      /* its name: see store_process_lock(); 0: none */
	int64_t deadline;  /* WORKERS_ENDING, WORKERS_KILLED */
	unsigned requests; /* that it got */
	bool leaving;      /* its run reaps it: .child is the run's alone */
	bool exited;       /* not reaped yet */
	bool old;          /* is to end after its request */
	const char *why;   /* it was ended; NULL: it is not needed */
	struct errlog errlog;
};

/* A file that a program was started from. */
struct workers_stamp {
	dev_t device;
	ino_t number;
	off_t size;
	struct timespec changed;
};

struct workers_pool {
	struct workers_pool *next;
	struct conf *conf; /* a reference: owns *program */
	const struct conf_program *program;
	bool retired; /* no route has it any more: see workers_is_wanted() */
	struct workers_process *all, *free;
	struct workers_ask *waiters;  /* the first has waited longest */
	unsigned n;                   /* in .all, but for those that end */
	unsigned failures;            /* starts in a row that came to nothing */
	int64_t next_start;           /* clock_mono() ms; 0: at once */
	int error;                    /* of the last failure: errno */
	struct workers_stamp *stamps; /* one for each of argv */
};

struct workers_all {
	struct lock lock;
	atomic_bool open; /* runs may ask */
	bool stopping;
	int epoll, wake;
	struct workers_pool *pools;
};
extern struct workers_all workers_all;

/* Wakes the spawner. */
void workers_wake(void);

/* With the lock: whether the pool has processes.  A retired one serves the runs
 * that wait, if its route has no other pool. */
bool workers_is_wanted(const struct workers_pool *pool);

/* With the lock: adds the waiters, in order, to those of the pool. */
void
workers_add_waiters(struct workers_pool *pool, struct workers_ask *waiters);

/* With the lock: the pool of the program's route; one that is not retired, if
 * there is one.  NULL: there is none. */
struct workers_pool *workers_find(const struct conf_program *program);

/* With the lock: a start has come to nothing. */
void workers_failed(struct workers_pool *pool, int error);

/* With the lock: gives the process to the run that has waited longest, or makes
 * it free. */
void workers_offer(struct workers_process *p);

/* With the lock: it has exited, or there is something to read. */
void workers_hear(struct workers_process *p);

/* What comes of .news. */
void workers_news_come(struct loop_message *m);

/* Stops the events of its descriptors. */
void workers_unwatch(struct workers_process *p);

/* Frees a pool without processes. */
void workers_free_pool(struct workers_pool *pool);

/* With the lock: answers all waiters. */
void workers_refuse(struct workers_pool *pool, int error);

#endif
