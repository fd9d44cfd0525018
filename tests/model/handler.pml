/*
 * What a handler can say: its attempts share the store with oncewrap, and each
 * commits its business row, its recovery points, an effect for the outbox and
 * the answer in transactions of its own, which oncewrap makes durable before
 * anything is seen of them.  The power may fail once, and then takes every
 * commit that was not synced.
 *
 *   H1  One ride, however often the handler is run; and the effect is there
 *       exactly when the answer is.
 *   H2  What a client saw stays the answer, though the power fails.
 *   H3  What was delivered is known to the store for good: no effect is
 *       delivered under two keys, and none is lost.
 *   H4  An attempt that lost its lease commits nothing.
 *   H5  No attempt charges after the answer, nor beside another one, unless
 *       an operator released the key while processes of it still lived.
 *   H6  In the end the key is completed or unknown, and all effects are
 *       delivered.
 *
 * A handler's first transaction makes the ride, its second says that it was
 * charged, its third is effect and answer.  The charge stands between the
 * first two.  The mutations, which must break them: see tests/model/run.
 */
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#define POWER_CUTS 1

mtype = { free, in_progress, completed, failed_retryable, unknown,
	nothing, waiting, claimed, delivered };

/* The database, as all processes read it; and what of it is on the disk. */
typedef store {
	mtype state;
	byte token, attempt, point;
	bool sealed;
	byte rides, answer;
	mtype effect;
	byte effect_key /* whose transaction made it: another key each */
}
store mem, disk;

/* What no power cut takes back. */
byte seen;         /* the answer that a client saw */
byte delivered_by; /* the effect key that was delivered */
byte cuts;

/* An attempt's processes, and its oncewrap. */
bool tree[ATTEMPTS + 1];
bool charging[ATTEMPTS + 1];
bool lock; /* the owner of the current lease lives */
byte tokens;
bool resume; /* on_crash */
bool lied;   /* the operator did not know of a living attempt */

inline copy(to, from)
{
	to.state = from.state;
	to.token = from.token;
	to.attempt = from.attempt;
	to.point = from.point;
	to.sealed = from.sealed;
	to.rides = from.rides;
	to.answer = from.answer;
	to.effect = from.effect;
	to.effect_key = from.effect_key
}

/* A commit of oncewrap's: synced, with all that was committed before it. */
inline sync()
{
	copy(disk, mem)
}

/* H1; at each commit. */
inline check_rows()
{
	assert(mem.rides <= 1);
	assert((mem.effect != nothing) == (mem.answer != 0))
}

/* What the triggers of the views look at. */
#ifdef VIEW_NO_TOKEN
#define MAY_WRITE(t) true
#define CURRENT(t)   true /* to be found by what comes of it */
#else
#define MAY_WRITE(t) (mem.token == t && \
	(mem.state == in_progress || mem.state == completed))
#define CURRENT(t)   (mem.token == t)
#endif

/*
 * A handler, from the recovery point that it was told.  It may end between
 * any two steps, or sleep for as long as it likes.
 */
proctype Handler(byte t)
{
	byte from;

	from = mem.point;
	if
	:: from == 0 ->
		if
		:: atomic { tree[t] && MAY_WRITE(t) ->
			assert(CURRENT(t)); /* H4 */
			mem.rides++;
			mem.point = 1;
			check_rows() }
		:: atomic { tree[t] && !MAY_WRITE(t) -> goto over }
		:: goto over
		fi
	:: else
	fi;
	if
	:: from <= 1 ->
		if
		:: atomic { tree[t] -> /* H5 */
			assert(lied || seen == 0 || seen == t);
			charging[t] = true;
			assert(lied || !charging[1] || !charging[2]);
			assert(lied || !charging[2] || !charging[3]);
			assert(lied || !charging[1] || !charging[3]) }
		:: goto over
		fi;
		if
		:: atomic { tree[t] && MAY_WRITE(t) ->
			assert(CURRENT(t));
			charging[t] = false;
			mem.point = 2;
			check_rows() }
		:: atomic { tree[t] && !MAY_WRITE(t) -> goto over }
		:: goto over
		fi
	:: else
	fi;
#ifdef EFFECT_APART
	if
	:: atomic { tree[t] && MAY_WRITE(t) && mem.effect == nothing ->
		mem.effect = waiting;
		mem.effect_key = t }
	:: atomic { tree[t] && MAY_WRITE(t) && mem.effect != nothing ->
		mem.effect_key = t;
		mem.effect = waiting }
	:: goto over
	fi;
#endif
	if
	:: atomic { tree[t] && MAY_WRITE(t) && mem.state != completed ->
		assert(CURRENT(t));
#ifndef EFFECT_APART
		mem.effect = waiting;
		mem.effect_key = t;
#endif
		mem.answer = t;
		mem.state = completed;
		mem.sealed = false;
		check_rows() }
	:: goto over
	fi;

over:	atomic {
		charging[t] = false;
		tree[t] = false
	}
}

inline lease()
{
	tokens++;
	mem.token = tokens;
	mem.attempt++;
	mem.state = in_progress;
	lock = true;
	sync()
}

/* The lease ends. */
inline settle(to)
{
	mem.state = to;
	mem.token = 0;
	lock = false;
	sync()
}

inline seal()
{
	mem.sealed = true;
	mem.token = 0;
	lock = false;
	sync()
}

/* H2 */
inline client_sees()
{
	assert(mem.state == completed && mem.answer != 0);
	assert(seen == 0 || seen == mem.answer);
	seen = mem.answer
}

/* Looks at the answer before it decides what became of a run. */
#ifdef ANSWER_OVERRULED
#define ANSWERED false
#define MINE	 (mem.token == mine)
#else
#define ANSWERED (mem.state == completed && mem.token == mine)
#define MINE	 (mem.state == in_progress && mem.token == mine)
#endif

#ifdef RESUME_EARLY
#define TREE_GONE(t) true
#else
#define TREE_GONE(t) (!tree[t])
#endif

/* The one that holds the lease; it may die at each step. */
proctype Oncewrap()
{
	byte mine;

end:	do
	:: atomic { tokens < ATTEMPTS && (mem.state == free ||
	    mem.state == failed_retryable) ->
		lease();
		mine = mem.token;
		goto leased }
	/* A retry, while the handler may still be at it. */
	:: atomic { mem.state == completed && mem.sealed ->
		client_sees() }
	:: atomic { mem.state == completed && !mem.sealed ->
#ifndef ANSWER_UNSYNCED
		sync();
#endif
		client_sees() }
	od;

leased:	if
	:: atomic { mem.token == mine && lock ->
		tree[mine] = true;
		run Handler(mine) }
	:: atomic { mem.token != mine || !lock -> mine = 0; goto end }
	fi;
	/* The handler's own process ends; what it started may live on. */
	if
	:: atomic { ANSWERED ->
		seal();
		client_sees() }
	:: atomic { MINE && resume && TREE_GONE(mine) ->
		settle(failed_retryable) }
	:: atomic { MINE && !resume ->
		settle(unknown) }
	:: atomic { mem.token != mine -> skip }
	:: atomic { true -> /* it dies */
		lock = lock && mem.token != mine }
	fi;
	mine = 0;
	goto end
}

/* What dead owners left. */
proctype Sweep()
{
end:	do
#ifndef ANSWER_OVERRULED
	:: atomic { mem.state == completed && !mem.sealed && !lock ->
		seal() }
#endif
	:: atomic { mem.state == in_progress && !lock && !resume ->
		settle(unknown) }
	:: atomic { mem.state == in_progress && !lock && resume &&
	    TREE_GONE(mem.token) ->
		settle(failed_retryable) }
#ifdef ANSWER_OVERRULED
	:: atomic { mem.state == completed && !mem.sealed && !lock ->
		settle(unknown) }
#endif
	od
}

/* It says that nothing happened, while a handler may be asleep: H1 to H4 do
 * not depend on its word. */
proctype Operator()
{
end:	do
	:: atomic { mem.state == unknown && tokens < ATTEMPTS ->
		lied = lied || tree[1] || tree[2] || tree[3];
		settle(failed_retryable) }
	od
}

/* It may die at each step; then the claim is free again. */
proctype Outbox()
{
	byte key;

end:	do
	:: atomic { mem.effect == waiting ->
		mem.effect = claimed;
		key = mem.effect_key;
#ifndef CLAIM_UNSYNCED
		sync()
#endif
	   };
	   if
	   :: atomic { mem.effect == claimed && mem.effect_key == key ->
		assert(delivered_by == 0 || delivered_by == key); /* H3 */
		delivered_by = key }
	   :: atomic { mem.effect != claimed || mem.effect_key != key ->
		key = 0;
		goto end }
	   :: atomic { mem.effect == claimed -> mem.effect = waiting; sync();
		key = 0;
		goto end }
	   fi;
	   if
	   :: atomic { mem.effect == claimed && mem.effect_key == key ->
		mem.effect = delivered;
		sync() }
	   :: atomic { mem.effect == claimed && mem.effect_key == key ->
		mem.effect = waiting;
		sync() }
	   :: atomic { mem.effect != claimed || mem.effect_key != key -> skip }
	   fi;
	   key = 0
	od
}

/* Everything ends at once, and what was not synced is gone.  At the next start
 * no lease is held, and claims are free. */
proctype Power()
{
end:	atomic { cuts < POWER_CUTS ->
		cuts++;
		copy(mem, disk);
		lock = false;
		tree[1] = false;
		tree[2] = false;
		tree[3] = false;
		charging[1] = false;
		charging[2] = false;
		charging[3] = false;
		if
		:: mem.effect == claimed -> mem.effect = waiting
		:: else
		fi;
		check_rows();
		assert(seen == 0 || /* H2 */
		    (mem.state == completed && mem.answer == seen));
		assert(delivered_by == 0 || /* H3 */
		    (mem.effect != nothing && mem.effect_key == delivered_by)) }
}

init
{
	atomic {
		mem.state = free;
		mem.effect = nothing;
		copy(disk, mem);
		if
		:: resume = true
		:: resume = false
		fi;
		run Oncewrap();
		run Oncewrap();
		run Sweep();
		run Operator();
		run Outbox();
		run Power()
	};
	/* H6 */
	timeout ->
	assert(mem.state == unknown || mem.state == completed ||
	    (mem.state == failed_retryable && tokens == ATTEMPTS));
	assert(mem.effect == nothing || mem.effect == delivered);
	assert(mem.state != completed || mem.sealed)
}
