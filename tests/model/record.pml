/*
 * The protocol of a key's record: two oncewraps with requests that have the
 * same key, handlers, crashes, sweep, reconciliation, age, an operator, and an
 * attempt that was taken for dead while it lived.
 *
 * It has the states of record.c, and every CHANGE and FORGET below is a change
 * that record.c allows; tests/model/run compares the two.  Each change of the
 * record is one atomic step, as each is one transaction.  There is no clock:
 * what may happen once it is time may happen at any time.
 *
 *   I1  No handler starts but under the durable reservation of the current
 *       attempt.
 *   I2  The answer that a client saw is what every client gets as long as the
 *       key is completed.
 *   I3  A key runs once, and once more for each time that it was released.
 *   I4  If all words are true, and a lost attempt is not resumed, a key takes
 *       effect once at most.
 *   I5  A process tree does nothing once a later attempt has begun, unless
 *       a false word let that begin.
 *   I6  An attempt that lost its lease changes nothing, nor does a verdict on
 *       an earlier attempt.  A lease is lost only with its lock file.
 *   I7  When nothing more happens, no key is pending or in progress, and none
 *       is unknown.
 *
 * With HOSTS the two oncewraps are of two hosts, as on PostgreSQL: there is no
 * lock that both see, so each may be suspected at any time while it lives, and
 * its attempt may settle late.
 *
 * The mutations, which must break them: see tests/model/run.
 */
#ifndef ATTEMPTS
#define ATTEMPTS 3 /* in all; at most 3 */
#endif
#ifndef DELETED
#define DELETED	 1 /* by age or by the operator: then the key is new */
#endif
#define TRIES	 2 /* to reconcile */

/* What answered; the attempts are 1 to ATTEMPTS. */
#define RECONCILER (ATTEMPTS + 1)
#define OPERATOR   (ATTEMPTS + 2)
#define TOO_LATE   (ATTEMPTS + 3) /* 408: never begun */

mtype = { none, pending, in_progress, completed, failed_retryable, unknown,
	dead_letter, expired };

/* The record: what is durable.  A row's number is that of no other row. */
mtype state = none;
byte row = 1, token, attempt, answer, tries;
byte tokens, deleted;

/* The owner of the current lease. */
bool lock;  /* is held, as all processes see it */
bool begun; /* it started the handler */

/* The attempts, by token. */
bool moved[4]; /* the lock file was replaced under it; or it was suspected */
bool tree[4];  /* its processes live */
bool acted[4]; /* and did what they are for */
byte row_of[4];
#ifdef HOSTS
byte late;     /* once_key.late_token */
bool waits[4]; /* has its lease, and may start its handler yet */
bool gone[4];  /* its oncewrap is dead, as its own host sees */
#endif

/* The configuration, and which processes there are. */
bool resume; /* on_crash */
bool honest; /* handlers, reconcilers and the operator tell the truth */

/* What happened to this row. */
bool may_run = true; /* new, or released, and not run since */
bool effect;         /* where all words are true */
bool lied;           /* it may have been released by a false word */
byte seen;           /* the answer that clients saw */

/*
 * Changes of the record.
 */
#define CHANGE(from, to) change(from, to)
#define FORGET(from)	 change(from, none)

inline change(from, to)
{
	assert(state == from);
	state = to
}

#ifdef HOSTS
#define WAIT(t, it) waits[t] = it
#define GONE(t)	    gone[t] = true
#define NOT_LATE    late = 0
#ifdef LATE_KEPT
#define NOT_LATE_RELEASE skip
#else
#define NOT_LATE_RELEASE NOT_LATE
#endif
#else
#define WAIT(t, it) skip
#define GONE(t)	    skip
#define NOT_LATE    skip
#define NOT_LATE_RELEASE skip
#endif

/* The lease ends. */
inline unlease()
{
	token = 0;
	lock = false;
	begun = false
}

inline lease(mine)
{
	tokens++;
	attempt++;
	mine = tokens;
	my_row = row;
	token = mine;
	WAIT(mine, true);
	lock = true
}

inline complete(by)
{
	tries = 0;
	NOT_LATE;
	answer = by
}

/* The key may run again.  word: because of a word that nothing happened. */
inline release(word)
{
	tries = 0;
	NOT_LATE_RELEASE;
	may_run = true;
	lied = lied || (word && !honest)
}

inline give_up()
{
	tries = 0;
	NOT_LATE
}

inline no_answer()
{
	answer = 0;
	seen = 0
}

inline deletion()
{
	deleted++;
	row++;
	attempt = 0;
	tries = 0;
	NOT_LATE;
	no_answer();
	may_run = true;
	effect = false;
	lied = false
}

/* I2 */
inline client_sees(what)
{
	assert(seen == 0 || seen == what);
	seen = what
}

/*
 * Compare-and-set: WHERE id, state and token, or attempt and tries.  A
 * mutation is to be found by what comes of it, not by the check of I6.
 */
#ifdef NO_TOKEN
#define HOLDS	(state == in_progress && row == my_row)
#define CURRENT true
#else
#define HOLDS	(state == in_progress && row == my_row && token == mine)
#define CURRENT (token == mine)
#endif
#if defined(RESOLVE_NO_TRIES)
#define SAME_TRY     (state == unknown && row == my_row)
#define SAME_ATTEMPT true
#elif defined(RESOLVE_NO_ATTEMPT)
#define SAME_TRY     (state == unknown && row == my_row && tries == my_tries)
#define SAME_ATTEMPT true
#else
#define SAME_TRY     (state == unknown && row == my_row && \
	attempt == my_attempt && tries == my_tries)
#define SAME_ATTEMPT (attempt == my_attempt)
#endif

/* The outcome of an attempt whose key became unknown on suspicion. */
#ifndef HOSTS
#define LATE false
#elif defined(LATE_NO_TOKEN)
#define LATE (state == unknown && row == my_row && late != 0)
#else
#define LATE (state == unknown && row == my_row && late == mine)
#endif

/* The attempt's own lock: in another file it proves nothing. */
#ifdef RESUME_EARLY
#define TREE_GONE(t) true
#elif defined(HOSTS)
#define TREE_GONE(t) (!tree[t] && !waits[t])
#else
#define TREE_GONE(t) (!tree[t] && !moved[t])
#endif

#define FIRST (first || tokens > 0)

#ifdef SWEEP_LIVING
#define DEAD (state == in_progress)
#else
#define DEAD (state == in_progress && !lock)
#endif

/* Whether "not executed" is true: not yet, and never.  An operator has to know
 * both.  A reconciler sees the first; it is asked only when the processes of
 * the attempt, which is the last one that had a lease, are gone. */
#define QUIET(t)   (!tree[t] || row_of[t] != row)
#define CAN_BE_NOT (!honest || \
	(!effect && QUIET(1) && QUIET(2) && QUIET(3)))
#define SEEN_NOT   (!honest || !effect)
#ifdef ASK_EARLY
#define MAY_ASK true
#elif defined(HOSTS)
#define MAY_ASK (!tree[tokens] && !waits[tokens])
#else
#define MAY_ASK (!tree[tokens])
#endif
/* Whoever settles a key on suspicion must know that its handler has begun, or
 * never will; see README for RESOLVED_EARLY. */
#if defined(HOSTS) && !defined(RESOLVED_EARLY)
#define BEGUN !waits[tokens]
#else
#define BEGUN true
#endif

/*
 * A process of oncewrap.  It may die at each step: it forgets all, and its
 * lock goes.  The next one begins where it began.  Both are alike, so it is
 * the first that gets the first lease.
 */
inline die()
{
	lock = lock && token != mine;
	moved[mine] = moved[mine] && token == mine;
	WAIT(mine, false);
	mine = 0;
	my_row = 0;
	verdict = 0;
	word = false
}

inline crash()
{
	GONE(mine);
	die()
}

proctype Oncewrap(bool first)
{
	byte mine, my_row;
	mtype verdict;
	bool word;

end:	do
	/* A request of a new key, answered when it has run, or accepted. */
	:: atomic { state == none && tokens < ATTEMPTS && FIRST ->
		CHANGE(none, in_progress);
		lease(mine);
		goto leased }
	:: atomic { state == none ->
		CHANGE(none, pending) }
	/* What was accepted: taken up, or too late. */
	:: atomic { state == pending && tokens < ATTEMPTS && FIRST ->
		CHANGE(pending, in_progress);
		lease(mine);
		goto leased }
	:: atomic { state == pending ->
		CHANGE(pending, completed);
		complete(TOO_LATE) }
	/* A retry. */
	:: atomic { state == failed_retryable && tokens < ATTEMPTS ->
		CHANGE(failed_retryable, in_progress);
		lease(mine);
		goto leased }
	:: atomic { state == completed && seen != answer ->
		client_sees(answer) }
	od;

leased:	if
	:: atomic { true ->
		/* I1; see README for REPLACED_EARLY */
		assert((state == in_progress && token == mine) || LATE ||
		    my_row != row);
		if
		:: my_row == row ->
			assert(may_run); /* I3 */
			may_run = false
		:: else
		fi;
		begun = begun || token == mine;
		WAIT(mine, false);
		tree[mine] = true;
		row_of[mine] = my_row }
	:: atomic { true -> /* it cannot be started */
		verdict = failed_retryable;
		goto settle }
	:: atomic { true -> crash(); goto end }
	fi;

	/* What becomes of the handler.  What it started may live on. */
	if
	:: atomic { true -> verdict = completed }
	:: atomic { !honest ->
		verdict = failed_retryable;
		word = true }
	:: atomic { honest && tree[mine] && !acted[mine] ->
		verdict = failed_retryable;
		tree[mine] = false;
		row_of[mine] = 0 }
	:: atomic { true -> verdict = unknown } /* says so, or was lost */
	:: atomic { resume && TREE_GONE(mine) -> /* was lost */
		verdict = failed_retryable }
	:: atomic { true -> crash(); goto end }
	fi;

settle:
#ifdef ANSWER_BEFORE_COMMIT
	atomic {
		if
		:: verdict == completed && row == my_row -> client_sees(mine)
		:: else
		fi
	};
#endif
	if
	:: atomic { HOLDS && verdict == completed ->
		assert(CURRENT); /* I6 */
		CHANGE(in_progress, completed);
		unlease();
		complete(mine);
		if
		:: client_sees(mine)
		:: true
		fi;
		die();
		goto end }
	:: atomic { HOLDS && verdict == failed_retryable ->
		assert(CURRENT);
		CHANGE(in_progress, failed_retryable);
		unlease();
		release(word);
		die();
		goto end }
	:: atomic { HOLDS && verdict == unknown ->
		assert(CURRENT);
		CHANGE(in_progress, unknown);
		unlease();
		die();
		goto end }
#ifdef HOSTS
	:: atomic { LATE && verdict == completed ->
		assert(mine == tokens); /* I6 */
		CHANGE(unknown, completed);
		complete(mine);
		if
		:: client_sees(mine)
		:: true
		fi;
		die();
		goto end }
	:: atomic { LATE && verdict == failed_retryable ->
		assert(mine == tokens);
		CHANGE(unknown, failed_retryable);
		release(word);
		die();
		goto end }
	:: atomic { LATE && verdict == unknown -> /* as it is */
		die();
		goto end }
#endif
	:: atomic { !HOLDS && !LATE ->
		assert(moved[mine]); /* I6; its answer reaches no client */
		die();
		goto end }
	:: atomic { true -> crash(); goto end }
	fi
}

/* What handlers start: it acts, or not, and ends some time. */
inline act(t)
{
	acted[t] = true;
	if
	:: row_of[t] == row ->
		assert(!effect || resume || !honest); /* I4 */
		effect = honest;
		assert(attempt == 1 || t == tokens || lied) /* I5 */
	:: else
	fi
}

inline end_of(t)
{
	tree[t] = false;
	acted[t] = false;
	row_of[t] = 0
}

proctype Trees()
{
end:	do
	:: atomic { tree[1] && !acted[1] -> act(1) }
	:: atomic { tree[2] && !acted[2] -> act(2) }
	:: atomic { tree[3] && !acted[3] -> act(3) }
	:: atomic { tree[1] -> end_of(1) }
	:: atomic { tree[2] -> end_of(2) }
	:: atomic { tree[3] -> end_of(3) }
	od
}

/* Attempts of dead owners. */
proctype Sweep()
{
#ifndef NO_SWEEP
end:	do
	:: atomic { DEAD && !resume ->
		CHANGE(in_progress, unknown);
		unlease() }
	:: atomic { DEAD && resume && TREE_GONE(token) ->
		CHANGE(in_progress, failed_retryable);
		unlease();
		release(false) }
	:: atomic { DEAD && resume && !TREE_GONE(token) -> /* past deadline */
		CHANGE(in_progress, unknown);
		unlease() }
#ifdef HOSTS
	/* The own host, after another one has suspected it. */
	:: atomic { state == unknown && late != 0 && resume && gone[late] &&
		    TREE_GONE(late) ->
		CHANGE(unknown, failed_retryable);
		release(false) }
#endif
	od
#else
	skip
#endif
}

#ifdef CLAIM_UNCOUNTED
#define COUNT_IT skip
#else
#define COUNT_IT tries++
#endif

/*
 * Finds out.  The try counts from the claim on, though it should come to
 * nothing.
 */
inline forget()
{
	my_row = 0;
	my_attempt = 0;
	my_tries = 0;
	not_executed = false
}

proctype Reconciler()
{
	byte my_row, my_attempt, my_tries;
	bool not_executed;

end:	do
	:: atomic { state == unknown && tries < TRIES && MAY_ASK ->
		COUNT_IT;
		my_row = row;
		my_attempt = attempt;
		my_tries = tries;
		goto looked }
	/* The last try came to nothing. */
	:: atomic { state == unknown && tries == TRIES ->
		CHANGE(unknown, dead_letter);
		give_up() }
	od;

looked:	if
	:: atomic { SEEN_NOT && !not_executed ->
		not_executed = true;
		goto looked }
	:: atomic { SAME_TRY && not_executed ->
		assert(SAME_ATTEMPT); /* I6 */
		CHANGE(unknown, failed_retryable);
		release(true);
		forget();
		goto end }
	:: atomic { SAME_TRY && !not_executed ->
		assert(SAME_ATTEMPT);
		CHANGE(unknown, completed);
		complete(RECONCILER);
		forget();
		goto end }
	:: atomic { SAME_TRY && !not_executed && tries == TRIES ->
		assert(SAME_ATTEMPT);
		CHANGE(unknown, dead_letter);
		give_up();
		forget();
		goto end }
	/* Later again; or too late; or it dies. */
	:: atomic { true -> forget(); goto end }
	fi
}

/* A webhook too. */
proctype Operator()
{
end:	do
	:: atomic { state == unknown && BEGUN ->
		CHANGE(unknown, completed);
		complete(OPERATOR) }
	:: atomic { state == unknown && BEGUN && CAN_BE_NOT ->
		CHANGE(unknown, failed_retryable);
		release(true) }
	:: atomic { state == dead_letter ->
		CHANGE(dead_letter, completed);
		complete(OPERATOR) }
	:: atomic { state == dead_letter && CAN_BE_NOT ->
		CHANGE(dead_letter, failed_retryable);
		release(true) }
	:: atomic { state == pending && deleted < DELETED ->
		FORGET(pending);
		deletion() }
	:: atomic { state == completed && deleted < DELETED ->
		FORGET(completed);
		deletion() }
	:: atomic { state == failed_retryable && deleted < DELETED ->
		FORGET(failed_retryable);
		deletion() }
	:: atomic { state == unknown && deleted < DELETED ->
		FORGET(unknown);
		deletion() }
	:: atomic { state == dead_letter && deleted < DELETED ->
		FORGET(dead_letter);
		deletion() }
	:: atomic { state == expired && deleted < DELETED ->
		FORGET(expired);
		deletion() }
	od
}

proctype Reap()
{
end:	do
	:: atomic { state == completed ->
		CHANGE(completed, expired);
		no_answer() }
	:: atomic { state == failed_retryable ->
		CHANGE(failed_retryable, expired) }
	:: atomic { state == completed && deleted < DELETED ->
		CHANGE(completed, none);
		deletion() }
	:: atomic { state == failed_retryable && deleted < DELETED ->
		CHANGE(failed_retryable, none);
		deletion() }
	:: atomic { state == expired && deleted < DELETED ->
		CHANGE(expired, none);
		deletion() }
	od
}

#ifdef HOSTS
/* An owner that another host suspects, alive or not: unknown, never free. */
proctype Suspect()
{
end:	do
#ifdef SUSPECT_FREES
	:: atomic { state == in_progress && resume ->
		moved[token] = true;
		CHANGE(in_progress, failed_retryable);
		unlease();
		release(false) }
#endif
	:: atomic { state == in_progress ->
		moved[token] = true;
		late = token;
		CHANGE(in_progress, unknown);
		unlease() }
	od
}
#else
/* The lock file is replaced under a running attempt: it looks dead, and does
 * not know it. */
#ifdef REPLACED_EARLY
#define MAY_MOVE (state == in_progress && lock)
#else
#define MAY_MOVE (state == in_progress && lock && begun)
#endif
proctype Replace()
{
end:	atomic { MAY_MOVE ->
		lock = false;
		moved[token] = true }
}
#endif

init
{
	atomic {
		if
		:: resume = true
		:: resume = false
		fi;
		if
		:: honest = true
		:: honest = false
		fi;
		run Oncewrap(true);
		run Oncewrap(false);
		run Trees();
		run Sweep();
		run Reconciler();
		run Reconciler();
		run Operator();
		run Reap();
#ifdef HOSTS
		run Suspect()
#else
		run Replace()
#endif
	};
	/* I7 */
	timeout ->
	assert(state != in_progress && state != pending && state != unknown)
}
