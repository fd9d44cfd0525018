/*
 * A run, for run.c and run_start.c alone.
 */
#ifndef RUN_IMPL_H
#define RUN_IMPL_H

#include "child.h"
#include "errlog.h"
#include "run.h"

enum run_stage {
	STAGE_RUNNING,    /* until the deadline */
	STAGE_TERMINATED, /* SIGTERM was sent; until the second deadline */
	STAGE_KILLED      /* SIGKILL was sent; until the last deadline */
};

struct run {
	struct child child;
	int out, err;              /* our ends of the pipes; -1: at their end */
	bool out_ready, err_ready; /* result of the last poll */
	bool exited;               /* the program has, and is not reaped yet */
	bool over;
	size_t out_left; /* once over: bytes still in the pipe */
	bool streaming;
	bool discarding;
	enum run_stage stage;
	struct run_facts facts; /* .end is RUN_EXITED until a reason comes */
	int64_t started, deadline, looked;
	int64_t timeout, kill_after;
	uint64_t output, max_output;
	const struct log_request *log;
	struct errlog errlog;
};

/* Closes the descriptors that are not -1, of n. */
void run_close(const int *fds, size_t n);

#endif
