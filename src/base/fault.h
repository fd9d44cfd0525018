/*
 * Fault points: places where a test ends the process as a power switch would,
 * by SIGKILL.  Built with --enable-fault-points the environment says where:
 *
 *	ONCEWRAP_FAULT=NAME[:N[:stop]]
 *
 * At the Nth passage (first is 1), by whichever thread, the process is killed,
 * or stopped by SIGSTOP.  Without that option FAULT() is nothing, and nothing
 * of this is in the program.
 *
 * tests/crash/run dies at each point of this list in turn.  A comment says
 * where it is, and what must hold after a death there.
 */
#ifndef FAULT_H
#define FAULT_H

#ifndef FAULT_POINTS

#define FAULT(point) ((void)0)

#else

/* clang-format off */
#define FAULT_LIST(X) \
	/* mux has read a request, nobody handles it: nothing is stored */ \
	X(REQUEST_READ) \
	/* a worker has it: nothing is stored */ \
	X(REQUEST_TAKEN) \
	/* key and fingerprint are known: nothing is stored */ \
	X(FINGERPRINTED) \
	/* one that waited for another's run looks again: that one's outcome
	 * stands */ \
	X(WAIT_OVER) \
	/* before an operation is queued: as if it had not been asked for */ \
	X(OP_ASKED) \
	/* queued, not begun: likewise, unless it was committed meanwhile */ \
	X(OP_IN_QUEUE) \
	/* the committer has work, no transaction: nothing of it is stored */ \
	X(COMMIT_IDLE) \
	/* after BEGIN: nothing of the group is stored */ \
	X(COMMIT_BEGUN) \
	/* after each operation of a group: all or nothing of it is stored */ \
	X(COMMIT_OP) \
	/* before and after what a handler has committed is synced, where the
	 * group tells of it: nothing of the group is stored */ \
	X(HARDEN_BEFORE) \
	X(HARDEN_AFTER) \
	/* before COMMIT: likewise */ \
	X(COMMIT_READY) \
	/* after COMMIT, nobody was told: all of it is stored */ \
	X(COMMIT_DONE) \
	/* some of those who wait have been told, or all: likewise */ \
	X(COMMIT_TOLD) \
	/* before and after the log is moved into the database: what was
	 * committed stands */ \
	X(CHECKPOINT_BEFORE) \
	X(CHECKPOINT_AFTER) \
	/* a piece of a large answer is written, its transaction is open:
	 * in_progress */ \
	X(PIECE_WRITTEN) \
	/* a piece of a large answer is durable, others are not: likewise */ \
	X(PIECE_STORED) \
	/* the reservation is durable and known here, nothing ran */ \
	X(RESERVED) \
	/* a request is durably queued, its client does not know: it is run */ \
	X(ACCEPTED) \
	/* an attempt has its file, and no lease: the next sweep removes it */ \
	X(ATTEMPT_MADE) \
	/* the file has the token, the handler is not started */ \
	X(ATTEMPT_NAMED) \
	/* a sweep has removed the file of an attempt that has ended */ \
	X(ATTEMPT_SWEPT) \
	/* a queued request has its lease, and nothing of it ran: to the record
	 * it may have run */ \
	X(JOB_CLAIMED) \
	/* everything is ready for the handler, and it is not started: to the
	 * record it may have run */ \
	X(HANDLER_START) \
	/* it was started */ \
	X(HANDLER_STARTED) \
	/* each piece of its output was read: none of it is stored */ \
	X(HANDLER_OUTPUT) \
	/* it was reaped: its outcome is not stored */ \
	X(HANDLER_EXITED) \
	/* judged, not stored */ \
	X(JUDGED) \
	/* the outcome is durable, nothing of the answer is sent */ \
	X(SETTLED) \
	/* the outcome could not be stored in time, and is tried on */ \
	X(SETTLE_LEFT) \
	/* an answer is ready to be sent, whoever made it: what it says is
	 * so */ \
	X(ANSWER_READY) \
	/* some of it is sent, or all */ \
	X(ANSWER_SENT) \
	/* a key was found completed, its answer is not read yet */ \
	X(REPLAY_FOUND) \
	/* a status resource was found, its key's record is not read yet */ \
	X(STATUS_FOUND) \
	/* a stored answer was read */ \
	X(REPLAY_READ) \
	/* before and after each batch: what was committed stands, the rest is
	 * for the next pass */ \
	X(SWEEP_BEFORE) \
	X(SWEEP_AFTER) \
	X(REAP_BEFORE) \
	X(REAP_AFTER) \
	/* a key of the batch is changed, others are not: all or nothing */ \
	X(SWEEP_KEY) \
	X(REAP_KEY) \
	/* a try to find out is counted, its program has not run: it is tried
	 * again */ \
	X(RECONCILE_CLAIMED) \
	/* the program has ended, its verdict is not stored: likewise */ \
	X(RECONCILE_RAN) \
	/* a try to deliver an effect is counted, its program has not run: it
	 * is tried again */ \
	X(EFFECT_BEGUN) \
	/* the program has ended, that is not stored: likewise, and it may be
	 * delivered twice, with one key */ \
	X(EFFECT_RAN) \
	/* the end of the try is durable */ \
	X(EFFECT_RECORDED) \
	/* effects of a dead process are due again: all or nothing */ \
	X(SWEEP_EFFECTS) \
	/* the file is there and empty: the next start makes the tables */ \
	X(MIGRATE_FILE) \
	/* after each statement: all tables are there, or none */ \
	X(MIGRATE_STEP) \
	/* before COMMIT, and after */ \
	X(MIGRATE_READY) \
	X(MIGRATE_DONE) \
	/* the store is open, and has not been swept */ \
	X(STORE_OPENED) \
	/* no request is begun any more; handlers run */ \
	X(STOP_BEGUN) \
	/* drain_timeout is over: handlers are about to be ended */ \
	X(STOP_DRAIN) \
	/* all requests have been handled */ \
	X(STOP_DRAINED) \
	/* the store is still open, nothing is under way; its last write is
	 * not done */ \
	X(STOP_STORE) \
	/* the store is closed, the process is about to end */ \
	X(STOP_CLOSED)
/* clang-format on */

enum fault_point {
#define FAULT_ENUM(name) FAULT_##name,
	FAULT_LIST(FAULT_ENUM)
#undef FAULT_ENUM
	    FAULT_NPOINTS
};

#define FAULT(point) fault_pass(FAULT_##point)

void fault_pass(enum fault_point);

#endif

#endif
