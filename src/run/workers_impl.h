/*
 * Pools and processes, for this room alone.  A run reads the child, the lock
 * and .err of a process that it has.
 */
#ifndef WORKERS_IMPL_H
#define WORKERS_IMPL_H

#include <sys/stat.h>

#include "child.h"
#include "conf.h"
#include "errlog.h"
#include "helpers.h"
#include "workers.h"

enum workers_state {
	WORKERS_NEW,    /* to be started, or being started */
	WORKERS_FREE,   /* in its pool's list of free ones */
	WORKERS_BUSY,   /* a run has it */
	WORKERS_SPENT,  /* gets no more requests: is to be ended */
	WORKERS_ENDING, /* SIGTERM was sent; SIGKILL follows at the deadline */
	WORKERS_KILLED, /* SIGKILL was sent; it is given up at the deadline */
	WORKERS_GONE,   /* reaped or given up: only its lock is left */
	WORKERS_FORGET  /* the spawner gives its lock up */
};

struct workers_process {
	struct workers_process *next;      /* of its pool */
	struct workers_process *next_free; /* WORKERS_FREE */
	struct workers_pool *pool;
	struct conf *conf; /* a reference: owns *program */
	const struct conf_program *program;
	enum workers_state state;
	struct workers_ask *user; /* WORKERS_BUSY */
	struct helpers_task task; /* of the spawner */
	struct loop_watch watch_exit, watch_err;
	struct child child;
	int listener;      /* this process's descriptor of its socket */
	int address;       /* of the socket's file (O_PATH) */
	int err;           /* the reading end of its descriptors 1 and 2 */
	int error;         /* of its start: errno */
	int64_t lock;      /* its name: see store_process_lock(); 0: none */
	int64_t deadline;  /* WORKERS_ENDING, WORKERS_KILLED */
	unsigned requests; /* that it got */
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
	bool dropped; /* nor had one before the last reload */
	struct workers_process *all, *free;
	struct workers_ask *waiters;  /* the first has waited longest */
	unsigned n;                   /* in .all, but for those that end */
	unsigned failures;            /* starts in a row that came to nothing */
	int64_t next_start;           /* clock_mono() ms; 0: at once */
	bool starting;                /* the spawner starts a process */
	int error;                    /* of the last failure: errno */
	struct workers_stamp *stamps; /* one for each of argv */
};

struct workers_all {
	struct workers_owner owner;
	struct loop *loop; /* of the runs; NULL: no processes are kept */
	struct helpers *spawner;
	struct loop_timer timer;
	void (*ended)(void *arg); /* NULL: it is not being stopped */
	void *ended_arg;
	struct workers_pool *pools;
};
extern struct workers_all workers_all;

/* What is to be done is done in this round of the loop. */
void workers_wake(void);

/* Whether the pool has processes.  A retired one serves the runs
 * that wait, if its route has no other pool. */
bool workers_is_wanted(const struct workers_pool *pool);

/* Adds the waiters, in order, to those of the pool. */
void
workers_add_waiters(struct workers_pool *pool, struct workers_ask *waiters);

/* The pool of the program's route; one that is not retired, if
 * there is one.  NULL: there is none. */
struct workers_pool *workers_find(const struct conf_program *program);

/* A start has come to nothing. */
void workers_failed(struct workers_pool *pool, int error);

/* Gives the process to the run that has waited longest, or makes
 * it free. */
void workers_offer(struct workers_process *p);

/* Watches for its end, and for what it prints.  RC_NOMEM, RC_IO. */
enum rc workers_watch(struct workers_process *p);

/* Stops the events of its descriptors. */
void workers_unwatch(struct workers_process *p);

/* Frees a pool without processes. */
void workers_free_pool(struct workers_pool *pool);

/* Answers all waiters. */
void workers_refuse(struct workers_pool *pool, int error);

#endif
