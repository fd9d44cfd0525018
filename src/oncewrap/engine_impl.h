/*
 * Private to the files of the request path: a request under way, and the places
 * where it can be.
 *
 * A place is a function of the job, which returns the next place.  It is called
 * in the loop, and must not wait; or, if it may wait or takes long, in a helper
 * of that kind, where it must not touch struct engine.  PLACE_WAIT: job->place
 * is where the job goes on when engine_wake() or engine_go() is called; until
 * then it is in a list, or something is to call it.
 */
#ifndef ENGINE_IMPL_H
#define ENGINE_IMPL_H

#include <sys/queue.h>

#include "attempt.h"
#include "scope.h"
#include "cgistream.h"
#include "exchange.h"
#include "helpers.h"
#include "json.h"
#include "key.h"
#include "rate.h"
#include "route.h"
#include "store_call.h"

#include "engine.h"

/* Who calls a place: the loop, or a helper. */
enum engine_by {
	BY_LOOP,
	BY_STORE, /* calls of the store that may wait, and files */
	BY_SMALL, /* parses bodies that are in memory */
	BY_LARGE, /* parses large bodies */
	BY_FILES, /* writes large bodies and outputs */
	BY_START, /* starts programs: lives as long as they do */
	BY_USER,  /* the same, where a user or group must be looked up first */
	BY_PAGE,  /* makes pages for operators */
	BY_NAMES, /* looks up the names of hosts */
	BY_N
};

/* In the order of a life; see the table in engine.c. */
/* clang-format off */
enum place {
	/* what kind of request it is; its key, scope and fingerprint */
	PLACE_BEGIN, PLACE_PAGE, PLACE_STATUS, PLACE_MEMORY, PLACE_CHECK,
	PLACE_CHECK_SMALL, PLACE_CHECK_LARGE, PLACE_CHECK_STORE,
	PLACE_CHECKED,
	/* what is stored under the key */
	PLACE_LOOK, PLACE_LOOKED, PLACE_COMPARE, PLACE_COMPARE_LARGE,
	PLACE_DECIDE, PLACE_RECOVER, PLACE_FETCH, PLACE_FETCH_STORE,
	PLACE_FIRST, PLACE_WAITED,
	/* a slot, and a lease or a place in the queue */
	PLACE_SLOT, PLACE_PREPARE, PLACE_PREPARE_FILES, PLACE_TAKE,
	PLACE_TAKEN, PLACE_RESPOND, PLACE_RESPOND_STORE, PLACE_SHOW,
	/* the program */
	PLACE_START, PLACE_START_NAMED, PLACE_START_FILES, PLACE_SPAWN,
	PLACE_SPAWN_AS, PLACE_BEGIN_RUN, PLACE_REACH, PLACE_NAME,
	PLACE_NAME_FILES, PLACE_CANCEL, PLACE_SEND, PLACE_OUTPUT,
	PLACE_SPOOL, PLACE_STREAM, PLACE_RAN, PLACE_LEFT, PLACE_PAUSE,
	/* its outcome */
	PLACE_JUDGE, PLACE_FINISHED, PLACE_SETTLED, PLACE_SETTLED_FILES,
	PLACE_RESULT, PLACE_TELL, PLACE_TELL_FILES,
	/* the answer */
	PLACE_ANSWER, PLACE_REFUSE, PLACE_REFUSE_FILES, PLACE_REPLY,
	PLACE_CLEAN,
	/* not places: it goes on later; it is over */
	PLACE_WAIT, PLACE_END
};
/* clang-format on */

struct job;
TAILQ_HEAD(job_list, job);

/* A key in progress with a dead owner that could not be recovered yet, and the
 * time of the next try. */
struct engine_recovery {
	int64_t id, again_mono;
};
#define ENGINE_RECOVERIES 64
#define ENGINE_HASHES     256

/* Bytes of a part of output, and how many a job takes in a row. */
#define ENGINE_PART  (32 * 1024)
#define ENGINE_PARTS 8

/* See engine_slot.c. */
struct engine_slots {
	LIST_ENTRY(engine_slots) link;
	char *route;  /* NULL: `workers` */
	bool retired; /* of an earlier configuration */
	unsigned running;
	struct job_list waiting;
};

/* All of it is the loop's. */
struct engine {
	struct loop *loop;
	struct store *store;
	struct rate *rate; /* of new keys, by caller */
	struct helpers *helpers[BY_N];
	unsigned jobs;                /* requests under way */
	unsigned workers;             /* CGI programs at once, at most */
	struct engine_slots programs; /* theirs */
	LIST_HEAD(, engine_slots)
	processes; /* of routes whose processes stay */
	/* requests that wait: for the first one of their key to end, the one
	 * that has not looked for longest is the first; for memory to compare
	 * JSON; and those that go on in this round */
	struct job_list first, memory, woken;
	/* those in first, by a hash of their key */
	LIST_HEAD(, job) same[ENGINE_HASHES];
	struct loop_message wake;
	bool waking;
	struct loop_timer look; /* at the requests in first */
	size_t json_used;       /* bytes of memory to compare JSON */
	int64_t json_last;      /* the caller that got it last */
	struct engine_recovery recovery[ENGINE_RECOVERIES];
	bool draining; /* engine_drain() was called */
	struct runs *runs;
	struct engine_owner owner;
	char part[ENGINE_PART]; /* of output, within a call */
};

struct job {
	struct engine *engine;
	struct exchange *exchange;
	const struct conf *conf;
	struct request *rq;
	const struct conf_route *rule;
	struct answer answer;
	/* where it is, or where it goes on */
	enum place place;
	struct job_list *list; /* that it waits in, or NULL */
	TAILQ_ENTRY(job) link;
	LIST_ENTRY(job) same;    /* in engine->first */
	struct loop_timer timer; /* wakes it */
	struct helpers_task task;
	struct store_call call;
	struct store_asked asked; /* by it */
	bool guarded;
	bool later;                 /* accepted now, run later */
	struct engine_slots *slots; /* that it has one of, or NULL */
	int64_t slot_until;         /* mono; while it waits for a process */
	struct problem problem; /* what refuses it: .code, or PROBLEM_NONE */
	struct buf detail;      /* of that */
	/* from engine_find_key() and the checks */
	bool searched; /* for the key, with this result: */
	enum rc search_rc;
	enum key_verdict verdict;
	const struct conf_source *source; /* where it is, or NULL: a pair */
	char *key;                        /* KEY_OK */
	/* from engine_read_json() to engine_drop_json() */
	bool json_known;
	struct json *json;    /* the body, or NULL: it is not I-JSON */
	size_t json_cost;     /* what is taken of the memory */
	int64_t json_caller;  /* while it waits for memory */
	enum place json_then; /* where it goes on with it */
	enum rc scope_rc;     /* of engine_make_scope() */
	bool scope_empty;
	struct buf scope, fingerprint_spec;
	char cookie[RECORD_UUID_LEN + 1]; /* reservation.cookie */
	struct store_reservation reservation;
	/* from the reservation: the record that keeps the request from running;
	 * or the attempt's lease, or a place in the queue */
	enum decision decision;
	int looks; /* at the record, since the request came or waited */
	/* why there is no reservation, or RC_OK; it was read once more */
	enum rc untaken;
	struct record record;
	struct store_inline_answer inline_answer;
	bool again;        /* the key was released before */
	bool acted_before; /* an earlier attempt of the key may have acted */
	/* that, or the queue will run it; true as long as the record has not
	 * been read: no new key is safe */
	bool may_have_acted;
	int attempts;       /* of the key, when its record was read */
	bool counted;       /* counted as a new key of its caller */
	bool too_fast;      /* DECIDE_CROWDED: too many new keys in a second */
	enum age age;       /* of a request that would run */
	int64_t wait_until; /* mono; in first */
	struct attempt attempt;
	struct store_ticket ticket;
	/* from engine_start() */
	bool waits_for_run;    /* its move calls the job */
	struct cgistream head; /* of an answer that is streamed */
	bool streamed, gone;   /* some of it was; and the client has gone */
	char *part;            /* output on its way into a file */
	size_t part_len;
};

/* Goes on from there; by the loop. */
void engine_go(struct job *job, enum place place);

/* Has the job go on from job->place later in this round; takes it off its
 * list, and clears its timer. */
void engine_wake(struct job *job);

/* The call of job->timer: wakes the job. */
void engine_timer_due(struct loop_timer *t);

/* Puts the job into that list, to go on from there; PLACE_WAIT. */
enum place
engine_wait_in(struct job *job, struct job_list *list, enum place then);

/* After a call of the store: goes on there, when it is done. */
enum place engine_called(struct job *job, bool done, enum place then);

/* Its key has ended: wakes those that wait for that. */
void engine_wake_same(const struct job *job);

/* Takes a slot for the program of the request, if it has none: then.  Or waits
 * for one, and goes on with it there: later. */
enum place engine_take_slot(struct job *job, enum place then, enum place later);
void engine_free_slot(struct job *job);

/* Those that wait for a slot go on without one. */
void engine_drain_slots(struct engine *engine);
void engine_free_slots(struct engine *engine);

/* Where the program is started. */
enum place engine_place_of_start(const struct job *job);

/* Whether a problem may be one of the operator's pages, which are files. */
bool engine_wants_page(const struct job *job);

/* Sets job->problem; the job then goes to PLACE_ANSWER.  For use as `return
 * engine_refuse(...)`: it returns false, the result of a failed check.  detail
 * NULL: the sentence of the code. */
bool engine_refuse(struct job *job, enum problem_code code, const char *detail);
bool engine_refusef(struct job *job, enum problem_code code, const char *format,
    ...) __attribute__((format(printf, 3, 4)));
bool engine_refuse_store(struct job *job, enum rc rc);
/* The key was used for a different request. */
bool engine_refuse_reused(struct job *job);
/* The process is being stopped. */
bool engine_refuse_stop(struct job *job);

/* Takes the memory to read a large body as JSON, or has the job wait for it and
 * go on from there.  False: PLACE_WAIT, or the job was refused (PLACE_ANSWER):
 * *next. */
bool engine_take_memory(struct job *job, enum place then, enum place *next);
void engine_give_memory(struct job *job);

/* Reads the body of a request: a body in a file is read from the file, so that
 * it takes no memory. */
request_read_fn engine_read_body;

/* Reads the body as JSON, once.  RC_OK, RC_NOMEM, RC_IO. */
enum rc engine_read_json(struct job *job);
void engine_drop_json(struct job *job);

/* Notes what limit refuses the request, and to whom; of_all: to everyone. */
void engine_note_refused(
    struct job *job, enum problem_code code, const char *limit, bool of_all);

/* Looks for the key, once.  RC_OK, with the result in the job; or a
 * failure of engine_read_json(). */
enum rc engine_find_key(struct job *job);

/* Whether its checks may read the body as JSON. */
bool engine_may_read_json(const struct job *job);

/*
 * These come before the checks, so that the log's line of a refusal has the
 * scope and the key as well.  make_scope: its result is for
 * engine_check_scope().  note_key: a key that only the body has is found if the
 * whole body is there.  make_reference: if there are a scope and a key, the
 * request's instance is its Reference from now on, in log, answers and store.
 */
void engine_make_scope(struct job *job);
void engine_note_key(struct job *job);
void engine_make_reference(struct job *job);

/* Of a request that does not come to its reservation: clears may_have_acted if
 * its key can be found without the body, and has no record.  Reads the
 * store. */
void engine_note_unused(struct job *job);

/*
 * The checks of a guarded request, in this order; false: it was refused.
 *
 * body: the whole body arrived, and there is room for it.  size: it is not
 * longer than allowed, and fits into the store, if it must be stored.  key:
 * there is exactly one, and it is well-formed.  scope: identifies the caller.
 */
bool engine_check_body(struct job *job);
bool engine_check_size(struct job *job);
bool engine_check_key(struct job *job);
bool engine_check_scope(struct job *job);
bool engine_take_fingerprint(struct job *job);

/* Whether the key, or a part of it, came from a form or a query: a page that
 * another wrote may have it. */
bool engine_key_is_of_page(const struct job *job);

/* Makes the reservation's fingerprint by that spec.  RC_OK, RC_VERSION, or a
 * failure of engine_read_json(). */
enum rc engine_fingerprint(struct job *job, const char *fingerprint_spec);

/* What the places do: the table in engine.c says which is called where. */
enum place engine_begin(struct job *job);
enum place engine_page(struct job *job);
enum place engine_status(struct job *job);
enum place engine_memory(struct job *job);
enum place engine_check(struct job *job);
enum place engine_checked(struct job *job);
enum place engine_look(struct job *job);
enum place engine_looked(struct job *job);
enum place engine_compare(struct job *job);
enum place engine_decide(struct job *job);
enum place engine_recover(struct job *job);
enum place engine_fetch(struct job *job);
enum place engine_first(struct job *job);
enum place engine_waited(struct job *job);
enum place engine_slot(struct job *job);
enum place engine_prepare(struct job *job);
enum place engine_take(struct job *job);
enum place engine_taken(struct job *job);
enum place engine_respond(struct job *job);
enum place engine_show(struct job *job);
enum place engine_start(struct job *job);
enum place engine_begin_run(struct job *job);
enum place engine_reach(struct job *job);
enum place engine_name(struct job *job);
enum place engine_cancel(struct job *job);
enum place engine_send(struct job *job);
enum place engine_output(struct job *job);
enum place engine_spool(struct job *job);
enum place engine_stream(struct job *job);
enum place engine_ran(struct job *job);
enum place engine_left(struct job *job);
enum place engine_pause(struct job *job);
enum place engine_judge(struct job *job);
enum place engine_finished(struct job *job);
enum place engine_settled(struct job *job);
enum place engine_result(struct job *job);
enum place engine_tell(struct job *job);
enum place engine_answer(struct job *job);
enum place engine_refuse_now(struct job *job);
enum place engine_reply(struct job *job);
enum place engine_clean(struct job *job);

#endif
