/*
 * Fault points: places where a test ends the process by SIGKILL, as abruptly
 * as a power failure.  In a build with --enable-fault-points the environment
 * names the place:
 *
 *	ONCEWRAP_FAULT=NAME[:[+]N[:stop]]
 *
 * At the Nth passage (the first is 1) in any thread the process is killed, or
 * stopped by SIGSTOP; with a plus, at the Nth one after STORE_OPENED.  Without
 * --enable-fault-points, FAULT() is nothing and no code of this file is in the
 * program.
 *
 * tests/crash/run kills the process at each point of this list in turn.  The
 * comment of a point says where it is, and what must hold after a death there.
 */
#ifndef FAULT_H
#define FAULT_H

#ifndef FAULT_POINTS

#define FAULT(point) ((void)0)

#else

/* clang-format off */
#define FAULT_LIST(X) \
	/* mux has read a request, no thread handles it: nothing is stored */ \
	X(REQUEST_READ) \
	/* a worker has the request: nothing is stored */ \
	X(REQUEST_TAKEN) \
	/* key and fingerprint are known: nothing is stored */ \
	X(FINGERPRINTED) \
	/* a request that waited for another run of its key looks again: the
	 * outcome of that run stands */ \
	X(WAIT_OVER) \
	/* before an operation is queued: it has no effect */ \
	X(OP_ASKED) \
	/* the operation is queued, not begun: it has no effect, unless it
	 * was committed meanwhile */ \
	X(OP_IN_QUEUE) \
	/* the committer has work, no transaction: nothing of the group is
	 * stored */ \
	X(COMMIT_IDLE) \
	/* after BEGIN: nothing of the group is stored */ \
	X(COMMIT_BEGUN) \
	/* after each operation of a group: all of the group is stored, or
	 * nothing */ \
	X(COMMIT_OP) \
	/* before and after the frames that a handler has committed are
	 * synced, if the group depends on them: nothing of the group is
	 * stored */ \
	X(HARDEN_BEFORE) \
	X(HARDEN_AFTER) \
	/* before COMMIT: nothing of the group is stored */ \
	X(COMMIT_READY) \
	/* COMMIT is on its way to the server: all of the group is stored, or \
	 * nothing */ \
	X(COMMIT_SENT) \
	/* after COMMIT, no caller is notified: all of the group is stored */ \
	X(COMMIT_DONE) \
	/* the row of a session is committed, and no write of it */ \
	X(SESSION_MADE) \
	/* the connection was lost in COMMIT, and another one has told \
	 * whether the group is stored */ \
	X(COMMIT_FOUND) \
	/* the process has shown the server that it lives, and has not \
	 * committed that */ \
	X(OWNER_MOVED) \
	/* some of the waiting callers are notified, or all: all of the group
	 * is stored */ \
	X(COMMIT_TOLD) \
	/* before and after a checkpoint of the log: what was committed
	 * stands */ \
	X(CHECKPOINT_BEFORE) \
	X(CHECKPOINT_AFTER) \
	/* a piece of a large body is written, its transaction is open: the
	 * key of a handler's answer is in_progress, any other is as it was */ \
	X(PIECE_WRITTEN) \
	/* a piece of a large body is durable, others are not: the same */ \
	X(PIECE_STORED) \
	/* the reservation is durable and known to the worker, nothing ran */ \
	X(RESERVED) \
	/* a request is durably queued, its client does not know: it runs
	 * later */ \
	X(ACCEPTED) \
	/* an attempt has its file and no lease: the next sweep removes the
	 * file */ \
	X(ATTEMPT_MADE) \
	/* the file has the token, the handler is not started */ \
	X(ATTEMPT_NAMED) \
	/* a sweep has removed the file of an ended attempt */ \
	X(ATTEMPT_SWEPT) \
	/* a queued request has its lease, and its handler has not run: by
	 * its record it may have run */ \
	X(JOB_CLAIMED) \
	/* a process that is to stay has its file, and is not started: the
	 * next sweep removes the file */ \
	X(PROCESS_MARKED) \
	/* a process that stays was started, no request has it: nothing is
	 * stored */ \
	X(PROCESS_STARTED) \
	/* an attempt names the process that it was given to, nothing is sent:
	 * by its record it may have run */ \
	X(ATTEMPT_GIVEN) \
	/* everything is ready for the handler, and it is not started: by its
	 * record it may have run */ \
	X(HANDLER_START) \
	/* the handler was started: by its record it may have run */ \
	X(HANDLER_STARTED) \
	/* after each piece of the handler's output is read: none of it is
	 * stored */ \
	X(HANDLER_OUTPUT) \
	/* the handler was reaped: its outcome is not stored */ \
	X(HANDLER_EXITED) \
	/* the outcome is judged, and not stored */ \
	X(JUDGED) \
	/* the outcome is durable, nothing of the response is sent */ \
	X(SETTLED) \
	/* the outcome could not be stored in time; the store keeps trying */ \
	X(SETTLE_LEFT) \
	/* a response of any origin is ready to be sent: its statement is
	 * true */ \
	X(ANSWER_READY) \
	/* some of the response is sent, or all */ \
	X(ANSWER_SENT) \
	/* a key was found completed, its response is not read yet */ \
	X(REPLAY_FOUND) \
	/* a status resource was found, its key's record is not read yet */ \
	X(STATUS_FOUND) \
	/* a stored response was read */ \
	X(REPLAY_READ) \
	/* before and after each batch: what was committed stands, the next
	 * pass does the rest */ \
	X(RECOVER_BEFORE) \
	X(RECOVER_AFTER) \
	X(EXPIRE_BEFORE) \
	X(EXPIRE_AFTER) \
	/* a key of the batch is changed, others are not: all of the batch is
	 * stored, or nothing */ \
	X(RECOVER_KEY) \
	X(EXPIRE_KEY) \
	/* a try to reconcile is counted, its program has not run: it is
	 * tried again */ \
	X(RECONCILE_CLAIMED) \
	/* the program has ended, its verdict is not stored: it is tried
	 * again */ \
	X(RECONCILE_RAN) \
	/* a try to deliver an effect is counted, its program has not run: it
	 * is tried again */ \
	X(EFFECT_BEGUN) \
	/* the program has ended, its result is not stored: it is tried
	 * again, so the effect may be delivered twice, with one key */ \
	X(EFFECT_RAN) \
	/* the result of the try is durable */ \
	X(EFFECT_RECORDED) \
	/* effects of a dead process are due again: all of them, or none */ \
	X(RECOVER_EFFECTS) \
	/* the file exists and is empty: the next start makes the tables */ \
	X(SCHEMA_FILE) \
	/* after each statement: all tables exist, or none */ \
	X(SCHEMA_STEP) \
	/* before and after COMMIT */ \
	X(SCHEMA_READY) \
	X(SCHEMA_DONE) \
	/* the store is open, and no sweep has run */ \
	X(STORE_OPENED) \
	/* no request begins any more; handlers run */ \
	X(STOP_BEGUN) \
	/* drain_timeout is over: the handlers are about to be terminated */ \
	X(STOP_DRAIN) \
	/* all requests have been handled */ \
	X(STOP_DRAINED) \
	/* the store is still open, no operation is under way; its last write
	 * is not done */ \
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

void fault_pass(enum fault_point point);

#endif

#endif
