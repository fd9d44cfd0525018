/*
 * The transactions of a store in PostgreSQL: the threads of a daemon, each with
 * a session, a keeper, connections that are lost in COMMIT, and a server that
 * goes back to an earlier state, because a standby was promoted that lacks the
 * last commits.  See txn.h.
 *
 * One key is requested again and again.  What a run is, and what becomes of it,
 * is for record.pml.
 *
 *   I1  No handler starts but under a lease that is committed.
 *   I2  The answer that a client saw is what every client gets.
 *   I3  A key runs once, and once more for each time that it was released.
 *   I7  When nothing more happens, no key is in progress, and the outcome of
 *       each COMMIT is known.
 *
 * I1 and I7 do not hold for what a server forgets; but then nothing runs any
 * more (I3), until an operator accepts the loss.
 *
 * LOSE: connections are lost in COMMIT.  FORGET: the server forgets.
 *
 * The mutations, which must break them: see tests/model/run.
 */
#define THREADS 2
#define KEEPER	THREADS /* its session */
#define SLOTS	3
#define RUNS	2 /* leases asked for */

mtype = { none, in_progress, completed, failed_retryable };
mtype = { ok, lost, nothing, pending, went_back };

/* What is committed. */
mtype state = none;
byte token;     /* of the lease; then of the answer */
byte seq[SLOTS]; /* once_session.seq */

/* What the standby has of it. */
mtype old_state = none;
byte old_token, old_seq[SLOTS];
bool forgot; /* the standby was promoted */

/* A transaction whose statements were carried out: it holds the locks of its
 * session and of the key until the server commits it or rolls it back. */
bool open[SLOTS];
mtype to[SLOTS];
byte to_token[SLOTS];
bool cut[SLOTS]; /* its connection is gone */

/* The daemon. */
bool conn[SLOTS];
bool pend[SLOTS];     /* the outcome of the last COMMIT is not known */
byte confirmed[SLOTS];
bool back;            /* it has noticed that the store went back */
byte tokens;

/* What the threads have left to the keeper. */
mtype late[THREADS] = none;
byte late_token[THREADS];
bool left[THREADS] = true; /* its session is free */
bool unsure[THREADS]; /* a COMMIT of it may still take place */

/* What happened. */
bool may_run = true;
byte seen;

#define FREE (!open[0] && !open[1] && !open[2])

/* A connection is made; each time all sessions are compared. */
#ifdef NO_COMPARE
#define LACKS(s) false
#elif defined(COMPARE_OWN) || defined(OTHER_DAEMON)
#define LACKS(s) (seq[s] < confirmed[s])
#else
#define LACKS(s) (seq[0] < confirmed[0] || seq[1] < confirmed[1] || \
	seq[2] < confirmed[2])
#endif
/* Whether the thread's daemon has noticed; another one has not. */
#ifdef OTHER_DAEMON
bool backs[SLOTS];
#define BACK(s)	  backs[s]
#define NOTICE(s) backs[s] = true
#else
#define BACK(s)	  back
#define NOTICE(s) back = true
#endif

inline connect(s)
{
	if
	:: LACKS(s) -> NOTICE(s)
	:: else -> conn[s] = true
	fi
}

/* SELECT seq ... FOR UPDATE waits for the end of the old transaction. */
#ifdef LOOK_EARLY
#define MAY_LOOK(s) true
#else
#define MAY_LOOK(s) !open[s]
#endif

inline roll_back(s)
{
	open[s] = false;
	cut[s] = false;
	to[s] = none;
	to_token[s] = 0
}

inline commit(s)
{
	state = to[s];
	token = to_token[s];
	seq[s]++;
	may_run = may_run || state == failed_retryable;
	roll_back(s)
}

/*
 * Runs a transaction: if cas holds, the record gets the state st and the token
 * tk.  r: ok, it is durable; lost, cas did not hold; nothing, it has failed and
 * will not appear; pending; went_back.
 */
inline transact(s, cas, st, tk)
{
	in_doubt = false;
	do
	:: atomic { BACK(s) -> r = went_back; break }
	:: atomic { !BACK(s) && !conn[s] -> connect(s) }
	/* What became of the last COMMIT. */
	:: atomic { conn[s] && pend[s] && MAY_LOOK(s) ->
		pend[s] = false;
		if
		:: seq[s] > confirmed[s] && in_doubt ->
			confirmed[s] = seq[s];
			r = ok;
			break
		:: else ->
			confirmed[s] = seq[s];
			in_doubt = false
		fi }
	/* The statements; the first of them wants that number. */
	:: atomic { conn[s] && !pend[s] && FREE && seq[s] == confirmed[s] &&
		    (cas) ->
		open[s] = true;
		to[s] = st;
		to_token[s] = tk }
	/* A row that is not there yet is not waited for. */
	:: atomic { conn[s] && !pend[s] && (FREE || state == none) &&
		    seq[s] == confirmed[s] && !(cas) -> r = lost; break }
	:: atomic { conn[s] && !pend[s] && FREE && seq[s] != confirmed[s] ->
		r = nothing; break }
	/* COMMIT: it is confirmed; or the connection is lost in it. */
	:: atomic { conn[s] && open[s] && !cut[s] && !pend[s] ->
		commit(s);
		confirmed[s]++;
		r = ok;
		break }
#ifdef LOSE
	:: atomic { conn[s] && open[s] && !cut[s] && !pend[s] ->
		conn[s] = false;
		cut[s] = true;
#ifdef GUESS_DONE
		confirmed[s]++;
		r = ok;
		break }
#elif defined(GUESS_NOT)
		r = nothing;
		break }
#else
		in_doubt = true;
		pend[s] = true }
#endif
#endif
	/* The time is over. */
	:: atomic { (!open[s] || cut[s]) && !in_doubt -> r = nothing; break }
	:: atomic { pend[s] && in_doubt -> r = pending; break }
	od;
	in_doubt = false
}

/* What a thread leaves to the keeper. */
inline leave(what)
{
	late[me] = what;
	late_token[me] = mine;
	unsure[me] = r == pending
}

proctype Thread(byte me)
{
	byte mine;
	mtype r = none, verdict = none;
	bool in_doubt;

end:	do
	:: atomic { conn[me] && !BACK(me) && state == completed &&
		    seen != token ->
		/* I2 */
		assert(seen == 0 || seen == token);
		seen = token }
	/* Nothing is begun while an outcome is not recorded. */
	:: atomic { !BACK(me) && tokens < RUNS && late[0] == none &&
		    late[1] == none ->
		left[me] = false;
		tokens++;
		mine = tokens;
		goto reserve }
	:: atomic { !BACK(me) && !conn[me] -> connect(me) }
	od;

reserve:
	transact(me, state == none || state == failed_retryable, in_progress,
	    mine);
	if
	:: atomic { r == ok -> r = none }
	:: atomic { r == pending -> /* nothing runs */
		leave(failed_retryable);
		goto over }
	:: atomic { else -> goto over }
	fi;

	atomic {
		assert((state == in_progress && token == mine) || forgot); /* I1 */
		assert(may_run); /* I3 */
		may_run = false;
		if
		:: verdict = completed
		:: verdict = failed_retryable
		fi
	};

	transact(me, state == in_progress && token == mine, verdict, mine);
	if
	:: atomic { r == ok && verdict == completed ->
		assert(seen == 0 || seen == mine); /* I2 */
		seen = mine }
	:: atomic { r == nothing || r == pending -> leave(verdict) }
	:: atomic { r == went_back || r == lost -> assert(forgot) }
	:: atomic { r == ok && verdict != completed }
	fi;
over:	atomic {
		left[me] = true;
		r = none;
		verdict = none;
		mine = 0;
		goto end
	}
}

/* An undo of a lease must not come before what it undoes. */
#ifdef UNDO_EARLY
#define SURE(i) true
#else
#define SURE(i) (!unsure[i] || (!pend[0] && !pend[1] && !pend[2]))
#endif

proctype Keeper()
{
	byte i;
	mtype r = none;
	bool in_doubt;

end:	do
	:: atomic { late[0] != none && SURE(0) -> i = 0; goto record }
	:: atomic { late[1] != none && SURE(1) -> i = 1; goto record }
	/* Sessions that threads have left in doubt. */
	:: atomic { left[0] && pend[0] && !BACK(0) && !conn[0] -> connect(0) }
	:: atomic { left[1] && pend[1] && !BACK(1) && !conn[1] -> connect(1) }
	:: atomic { left[0] && pend[0] && conn[0] && MAY_LOOK(0) ->
		pend[0] = false;
		confirmed[0] = seq[0] }
	:: atomic { left[1] && pend[1] && conn[1] && MAY_LOOK(1) ->
		pend[1] = false;
		confirmed[1] = seq[1] }
	:: atomic { pend[KEEPER] && !BACK(KEEPER) && !conn[KEEPER] ->
		connect(KEEPER) }
	:: atomic { pend[KEEPER] && conn[KEEPER] && MAY_LOOK(KEEPER) ->
		pend[KEEPER] = false;
		confirmed[KEEPER] = seq[KEEPER] }
	od;

record:	transact(KEEPER, state == in_progress && token == late_token[i],
	    late[i], late_token[i]);
	atomic {
		if
		:: r == ok || r == lost ->
			late[i] = none;
			late_token[i] = 0;
			unsure[i] = false
		:: r == pending -> unsure[i] = true
		:: else
		fi;
		r = none;
		i = 0;
		goto end
	}
}

/* A transaction whose client is gone is committed, if the COMMIT has arrived,
 * or rolled back. */
inline end_of(s)
{
	if
	:: commit(s)
	:: roll_back(s)
	fi
}

proctype Server()
{
end:	do
	:: atomic { open[0] && cut[0] -> end_of(0) }
	:: atomic { open[1] && cut[1] -> end_of(1) }
	:: atomic { open[2] && cut[2] -> end_of(2) }
	od
}

#ifdef FORGET
/* The standby follows, and is promoted when it has no more than that. */
proctype Standby()
{
end:	do
	:: atomic { !forgot && (state != old_state || token != old_token) ->
		old_state = state;
		old_token = token;
		old_seq[0] = seq[0];
		old_seq[1] = seq[1];
		old_seq[2] = seq[2] }
	:: atomic { !forgot ->
		forgot = true;
		state = old_state;
		token = old_token;
		seq[0] = old_seq[0];
		seq[1] = old_seq[1];
		seq[2] = old_seq[2];
		roll_back(0);
		roll_back(1);
		roll_back(2);
		conn[0] = false;
		conn[1] = false;
		conn[2] = false }
	od
}
#endif

init
{
	atomic {
		run Thread(0);
		run Thread(1);
		run Keeper();
		run Server();
#ifdef FORGET
		run Standby()
#endif
	};
	/* I7 */
	timeout -> assert(forgot || (state != in_progress && late[0] == none &&
	    late[1] == none && !pend[0] && !pend[1] && !pend[2]))
}
