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
 * tests/crash/run kills the process at each point of this list in turn, and
 * tests/lint/faults compares the list with the code.  The list says where a
 * point is, and what must hold after a death there; a name without a text
 * shares the one before it.  PLACE_X is one as well for each place X of
 * engine_impl.h: a request comes to it.
 *
 *	REQUEST_READ
 *		mux has read a request, the engine has not got it: nothing is
 *		stored
 *	REQUEST_TAKEN
 *		the engine has the request: nothing is stored
 *	FINGERPRINTED
 *		key and fingerprint are known: nothing is stored
 *	WAIT_OVER
 *		a request that waited for another run of its key looks again:
 *		the outcome of that run stands
 *	OP_ASKED
 *		before an operation is queued: it has no effect
 *	OP_IN_QUEUE
 *		the operation is queued, not begun: it has no effect, unless
 *		it was committed meanwhile
 *	COMMIT_IDLE
 *		the committer has work, no transaction: nothing of the group
 *		is stored
 *	COMMIT_BEGUN
 *		after BEGIN: nothing of the group is stored
 *	COMMIT_OP
 *		after each operation of a group: all of the group is stored,
 *		or nothing
 *	HARDEN_BEFORE
 *		before and after the frames that a handler has committed are
 *		synced, if the group depends on them: nothing of the group is
 *		stored
 *	HARDEN_AFTER
 *	COMMIT_READY
 *		before COMMIT: nothing of the group is stored
 *	COMMIT_SENT
 *		COMMIT is on its way to the server: all of the group is
 *		stored, or nothing
 *	COMMIT_DONE
 *		after COMMIT, no caller is notified: all of the group is
 *		stored
 *	SESSION_MADE
 *		the row of a session is committed, and no write of it
 *	COMMIT_FOUND
 *		the connection was lost in COMMIT, and another one has told
 *		whether the group is stored
 *	OWNER_MOVED
 *		the process has shown the server that it lives, and has not
 *		committed that
 *	COMMIT_TOLD
 *		some of the waiting callers are notified, or all: all of the
 *		group is stored
 *	CHECKPOINT_BEFORE
 *		before and after a checkpoint of the log: what was committed
 *		stands
 *	CHECKPOINT_AFTER
 *	PIECE_WRITTEN
 *		a piece of a large body is written, its transaction is open:
 *		the key of a handler's answer is in_progress, any other is as
 *		it was
 *	PIECE_STORED
 *		a piece of a large body is durable, others are not: the same
 *	RESERVED
 *		the reservation is durable and known to the engine, nothing
 *		ran
 *	ACCEPTED
 *		a request is durably queued, its client does not know: it runs
 *		later
 *	ATTEMPT_MADE
 *		an attempt has its file and no lease: the next sweep removes
 *		the file
 *	ATTEMPT_NAMED
 *		the file has the token, the handler is not started
 *	ATTEMPT_SWEPT
 *		a sweep has removed the file of an ended attempt
 *	JOB_CLAIMED
 *		a queued request has its lease, and its handler has not run:
 *		by its record it may have run
 *	PROCESS_MARKED
 *		a process that is to stay has its file, and is not started:
 *		the next sweep removes the file
 *	PROCESS_STARTED
 *		a process that stays was started, no request has it: nothing
 *		is stored
 *	ATTEMPT_GIVEN
 *		an attempt names the process that it was given to, nothing is
 *		sent: by its record it may have run
 *	HANDLER_START
 *		everything is ready for the handler, and it is not started: by
 *		its record it may have run
 *	HANDLER_STARTED
 *		the handler was started: by its record it may have run
 *	HANDLER_OUTPUT
 *		after each part of the handler's output is read: none of it
 *		is stored
 *	HANDLER_EXITED
 *		the handler was reaped: its outcome is not stored
 *	JUDGED
 *		the outcome is judged, and not stored
 *	SETTLED
 *		the outcome is durable, nothing of the response is sent
 *	SETTLE_LEFT
 *		the outcome could not be stored in time; the store keeps
 *		trying
 *	ANSWER_READY
 *		a response of any origin is ready to be sent: its statement is
 *		true
 *	ANSWER_SENT
 *		some of the response is sent, or all
 *	REPLAY_FOUND
 *		a key was found completed, its response is not read yet
 *	STATUS_FOUND
 *		a status resource was found, its key's record is not read yet
 *	REPLAY_READ
 *		a stored response was read
 *	RECOVER_BEFORE
 *		before and after each batch: what was committed stands, the
 *		next pass does the rest
 *	RECOVER_AFTER
 *	EXPIRE_BEFORE
 *	EXPIRE_AFTER
 *	RECOVER_KEY
 *		a key of the batch is changed, others are not: all of the
 *		batch is stored, or nothing
 *	EXPIRE_KEY
 *	RECONCILE_CLAIMED
 *		a try to reconcile is counted, its program has not run: it is
 *		tried again
 *	RECONCILE_RAN
 *		the program has ended, its verdict is not stored: it is tried
 *		again
 *	EFFECT_BEGUN
 *		a try to deliver an effect is counted, its program has not
 *		run: it is tried again
 *	EFFECT_RAN
 *		the program has ended, its result is not stored: it is tried
 *		again, so the effect may be delivered twice, with one key
 *	EFFECT_RECORDED
 *		the result of the try is durable
 *	RECOVER_EFFECTS
 *		effects of a dead process are due again: all of them, or none
 *	SCHEMA_FILE
 *		the file exists and is empty: the next start makes the tables
 *	SCHEMA_STEP
 *		after each statement: all tables exist, or none
 *	SCHEMA_READY
 *		before and after COMMIT
 *	SCHEMA_DONE
 *	STORE_OPENED
 *		the store is open, and no sweep has run
 *	STOP_BEGUN
 *		no request begins any more; handlers run
 *	STOP_DRAIN
 *		drain_timeout is over: the handlers are about to be terminated
 *	STOP_DRAINED
 *		all requests have been handled
 *	STOP_STORE
 *		the store is still open, no operation is under way; its last
 *		write is not done
 *	STOP_CLOSED
 *		the store is closed, the process is about to end
 */
#ifndef FAULT_H
#define FAULT_H

#ifndef FAULT_POINTS
#define FAULT(point)      ((void)0)
#define FAULT_NAMED(name) ((void)0)
#define fault_stops()     0U
#else
#define FAULT(point)      fault_pass(#point)
#define FAULT_NAMED(name) fault_pass(name)

void fault_pass(const char *point);

/* Changes while the process is stopped. */
unsigned fault_stops(void);
#endif

#endif
