/*
 * Processes that stay: a process gets one request after the other, and dies
 * before it has read one, during it, after its answer or between two; so does
 * the oncewrap that started it, with processes busy or idle.  What a process
 * has started outlives both.
 *
 *   P1  An attempt does nothing once a later one of its key has begun.
 *   P2  A key takes effect once, and once more for each attempt that was lost
 *       and resumed.
 *   P3  A process has one request at a time, so one that timed out, or closed
 *       its connection without an end, gets none.
 *   P4  An attempt that was not started has done nothing.
 *   P5  In the end no key is in progress, and none that is unknown waits for a
 *       process that goes on: its reconciler can be asked.
 *
 * The mutations, which must break them: see tests/model/run.
 */
#ifndef ATTEMPTS
#define ATTEMPTS 2 /* of both keys; at most 3 */
#endif
#define PROCESSES 2 /* one after the other, or at once */
/* Of processes, besides those that oncewrap ends: fewer than there are, or none
 * would go on in the end. */
#define DEATHS 1

mtype = { none, in_progress, completed, failed_retryable, unknown };

/* Two keys. */
mtype state[2] = none;
byte latest[2]; /* attempt */
bool leased[2]; /* its owner lives */
bool effect[2];
bool resume; /* on_crash */

/* The attempts. */
byte attempts;
byte key_of[4];
byte by[4];   /* its file names that process's lock */
bool sent[4]; /* a byte of its request */
bool acted[4];
bool child[4];  /* it has left something behind, ... */
byte ran_by[4]; /* ... which has the lock of that process */
bool ended[4], hung_up[4]; /* FCGI_END_REQUEST; the connection without it */

/* The processes. */
byte processes;
bool alive[3], idle[3];
byte queue[3];   /* the attempt whose connection is not accepted */
byte serving[3]; /* the attempt whose connection is */
byte deaths;

byte lives; /* of the oncewrap that ended */

#define CHILD_OF(p) ((child[1] && ran_by[1] == p) || \
	(child[2] && ran_by[2] == p) || (child[3] && ran_by[3] == p))
#ifdef CHILD_FREE
#define GONE(p) (!alive[p])
#else
#define GONE(p) (!alive[p] && !CHILD_OF(p))
#endif
#define TREE_GONE(t) (by[t] == 0 || GONE(by[t]))

#define IS_FREE(p) (alive[p] && idle[p])
#define MAY_RUN(k) (state[k] == none || state[k] == failed_retryable)

inline act(t)
{
	assert(latest[key_of[t]] == t); /* P1 */
	assert(!effect[key_of[t]] || resume); /* P2 */
	acted[t] = true;
	effect[key_of[t]] = true
}

inline die(p)
{
	alive[p] = false;
	idle[p] = false;
	serving[p] = 0
}

/* A process: libfcgi, or what is like it. */
proctype Process(byte p)
{
end:	do
	:: atomic { alive[p] && serving[p] == 0 && queue[p] != 0 ->
		serving[p] = queue[p];
		queue[p] = 0 }
	:: atomic { sent[serving[p]] && !acted[serving[p]] ->
		act(serving[p]) }
	:: atomic { sent[serving[p]] && !child[serving[p]] ->
		child[serving[p]] = true;
		ran_by[serving[p]] = p }
	:: atomic { sent[serving[p]] && !hung_up[serving[p]] ->
		ended[serving[p]] = true;
		serving[p] = 0 }
	:: atomic { sent[serving[p]] && !hung_up[serving[p]] ->
		hung_up[serving[p]] = true }
	:: atomic { alive[p] && deaths < DEATHS ->
		deaths++;
		die(p) }
	od
}

/* What an attempt left behind. */
proctype Child(byte t)
{
end:	do
	:: atomic { child[t] && !acted[t] -> act(t) }
	:: atomic { child[t] -> child[t] = false; ran_by[t] = 0 }
	od
}

/* Nothing asks for that any more. */
inline forget(t)
{
	ended[t] = false;
	hung_up[t] = false;
	sent[t] = false
}

/* A verdict on attempt t of key k. */
inline settle(to)
{
	assert(state[k] == in_progress && latest[k] == t);
	state[k] = to;
	leased[k] = false;
	forget(t)
}

/* The attempt's file ceases to name the process's lock. */
inline unname()
{
	by[t] = 0
}

/* A request, in a thread of its own.  Both threads are alike, and both keys, so
 * the first attempt is that of the first ones. */
proctype Thread(bool first)
{
	byte t, p, k, life;

end:	atomic { attempts < ATTEMPTS && (first || attempts > 0) &&
	    (MAY_RUN(0) || (MAY_RUN(1) && attempts > 0)) ->
		if
		:: MAY_RUN(0) -> k = 0
		:: MAY_RUN(1) && attempts > 0 -> k = 1
		fi;
		life = lives;
		attempts++;
		t = attempts;
		key_of[t] = k;
		latest[k] = t;
		state[k] = in_progress;
		leased[k] = true
	};
	{
		/* A free process, or a new one, or none in time. */
		if
		:: atomic { IS_FREE(1) || IS_FREE(2) ->
			p = (IS_FREE(1) -> 1 : 2);
			idle[p] = false }
		:: atomic { processes < PROCESSES ->
			processes++;
			p = processes;
			alive[p] = true }
		:: atomic { true -> settle(failed_retryable); goto over }
		fi;
		atomic {
			assert(serving[p] == 0 && queue[p] == 0); /* P3 */
#ifndef NAME_LATE
			by[t] = p;
#endif
			queue[p] = t
		};
		sent[t] = true;
#ifdef NAME_LATE
		by[t] = p;
#endif

		if
		:: atomic { ended[t] ->
			idle[p] = alive[p];
			goto answered }
		:: atomic { !ended[t] && !alive[p] -> goto dead }
		:: atomic { !ended[t] && hung_up[t] ->
#ifdef GIVE_EARLY
			idle[p] = alive[p];
			unname();
			goto lost
#else
			die(p);
			goto dead
#endif
		   }
		/* The timeout. */
		:: atomic { !ended[t] && alive[p] ->
#ifdef USE_AGAIN
			idle[p] = true;
			unname();
			goto lost
#else
			die(p);
			goto dead
#endif
		   }
		fi;

answered:	if
		:: atomic { true ->
			settle(completed);
			unname();
			goto over }
		/* It says that it did nothing, and that is true. */
		:: atomic { !acted[t] && !child[t] ->
			settle(failed_retryable);
			unname();
			goto over }
		/* It says, or its answer means, that the outcome is unknown. */
		:: atomic { true ->
			settle(unknown);
#ifndef NAME_KEPT
			unname();
#endif
			goto over }
		fi;

dead:
#ifdef DEAD_IS_DEAF
		if
		:: atomic { true ->
#else
		/* Its connection is still in the queue: not a byte was read. */
		if
		:: atomic { queue[p] == t ->
#endif
			assert(!acted[t]); /* P4 */
			queue[p] = 0;
			settle(failed_retryable);
			unname();
			goto over }
#ifndef DEAD_IS_DEAF
		:: atomic { queue[p] != t -> skip }
#endif
		fi;

lost:		if
		:: atomic { resume && TREE_GONE(t) ->
			settle(failed_retryable);
			unname() }
		:: atomic { !resume || !TREE_GONE(t) ->
			settle(unknown) }
		fi;
over:		skip
	} unless { lives != life };
	atomic {
		t = 0;
		p = 0;
		k = 0;
		life = 0
	};
	goto end
}

/* The oncewrap dies, and its processes with it. */
proctype Death()
{
end:	atomic { lives < 1 ->
		lives++;
		leased[0] = false;
		leased[1] = false;
		die(1);
		die(2);
		queue[1] = 0;
		queue[2] = 0 }
}

/* Of the next one. */
proctype Sweep(byte k)
{
end:	do
	:: atomic { state[k] == in_progress && !leased[k] && resume &&
	    TREE_GONE(latest[k]) ->
		state[k] = failed_retryable;
		by[latest[k]] = 0;
		forget(latest[k]) }
	:: atomic { state[k] == in_progress && !leased[k] &&
	    (!resume || !TREE_GONE(latest[k])) ->
		state[k] = unknown;
		forget(latest[k]) }
	od
}

init
{
	atomic {
		if
		:: resume = true
		:: resume = false
		fi;
		run Thread(true);
		run Thread(false);
		run Process(1);
		run Process(2);
		run Child(1);
		run Child(2);
		run Child(3);
		run Sweep(0);
		run Sweep(1);
		run Death()
	};
	/* P5 */
	timeout ->
	assert(state[0] != in_progress && state[1] != in_progress);
	assert(state[0] != unknown || TREE_GONE(latest[0]));
	assert(state[1] != unknown || TREE_GONE(latest[1]))
}
