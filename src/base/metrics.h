/*
 * Counters and gauges, and their text for Prometheus (exposition format
 * 0.0.4).  All names begin with oncewrap_.  One list defines all of them.  The
 * samples of a family stand together in it, and the help of a family is that
 * of its first sample.
 *
 * Any thread may count at any time, without a lock.  A text that is made
 * meanwhile may have one number and not yet the next, but within a histogram
 * buckets and count agree.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

/*
 *	C(ID, family, labels, help)		counter of this process
 *	R(ID, family, labels, help)		counter of each route
 *	H(ID, family, help, scale, bounds...)	histogram of this process,
 *						observed in units of 1/scale
 *	T(ID, family, help, scale, bounds...)	histogram of each route
 *	G(ID, family, labels, help)		gauge of this process
 *	S(ID, family, labels, help)		gauge that the store knows
 */
/* clang-format off */
/* The codes of problems: X(R, ID, code). */
#define METRICS_CODES(X, R) \
	X(R, REQUEST_INVALID, "request-invalid") \
	X(R, KEY_MISSING, "key-missing") \
	X(R, KEY_INVALID, "key-invalid") \
	X(R, KEY_REUSED, "key-reused") \
	X(R, KEY_IN_PROGRESS, "key-in-progress") \
	X(R, KEY_OF_ANOTHER, "key-of-another") \
	X(R, OUTCOME_UNKNOWN, "outcome-unknown") \
	X(R, KEY_EXPIRED, "key-expired") \
	X(R, RESPONSE_NOT_KEPT, "response-not-kept") \
	X(R, SCOPE_REQUIRED, "scope-required") \
	X(R, BODY_TOO_LARGE, "body-too-large") \
	X(R, BODY_INCOMPLETE, "body-incomplete") \
	X(R, TOO_MANY_KEYS, "too-many-keys") \
	X(R, REQUEST_TOO_OLD, "request-too-old") \
	X(R, STORE_UNAVAILABLE, "store-unavailable") \
	X(R, OVERLOADED, "overloaded") \
	X(R, HANDLER_NOT_STARTED, "handler-not-started") \
	X(R, HANDLER_FAILED, "handler-failed") \
	X(R, HANDLER_TIMEOUT, "handler-timeout") \
	X(R, OUTCOME_NOT_RECORDED, "outcome-not-recorded") \
	X(R, REQUEST_EXPIRED, "request-expired") \
	X(R, NOT_FOUND, "not-found") \
	X(R, METHOD_NOT_ALLOWED, "method-not-allowed")
#define METRICS_REFUSED(R, id, code) \
	R(REFUSED_##id, "refused_total", "code=\"" code "\"", \
	    "Problems that were sent, by their code.")
#define METRICS(C, R, H, T, G, S) \
	R(RESERVE_CREATED, "reserve_total", "result=\"created\"", \
	    "Guarded requests, by what was found under their key.") \
	R(RESERVE_REPLAY, "reserve_total", "result=\"replay\"", "") \
	R(RESERVE_IN_PROGRESS, "reserve_total", "result=\"in_progress\"", "") \
	R(RESERVE_KEY_MISUSE, "reserve_total", "result=\"key_misuse\"", "") \
	R(RESERVE_FAILED_RETRY, "reserve_total", \
	    "result=\"failed_retry\"", "") \
	R(RESERVE_UNKNOWN, "reserve_total", "result=\"unknown\"", "") \
	METRICS_CODES(METRICS_REFUSED, R) \
	C(STORE_ERRORS, "store_errors_total", "", \
	    "Reads and writes that the store did not do, or not in time.") \
	C(SWEPT, "swept_total", "", \
	    "Attempts of lost processes that were settled.") \
	C(EXPIRED, "expired_total", "", "Keys that ended by age.") \
	C(RECONCILE_SCHEDULED, "reconcile_total", "result=\"scheduled\"", \
	    "Tries to find out what became of an unknown key.") \
	C(RECONCILE_RESOLVED, "reconcile_total", "result=\"resolved\"", "") \
	C(RECONCILE_FAILED, "reconcile_total", "result=\"failed\"", "") \
	C(OUTBOX_DELIVERED, "outbox_total", "result=\"delivered\"", \
	    "Tries to deliver an effect of the outbox.") \
	C(OUTBOX_RETRIED, "outbox_total", "result=\"retried\"", "") \
	C(OUTBOX_DEAD, "outbox_total", "result=\"dead\"", "") \
	T(HANDLER_SECONDS, "handler_seconds", \
	    "How long handlers of guarded requests ran.", 1000, \
	    5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, \
	    60000) \
	H(COMMIT_BATCH, "commit_batch", \
	    "Changes of keys that one commit made durable.", 1, \
	    1, 2, 4, 8, 16, 32, 64, 128) \
	C(LOG_DROPPED, "log_dropped_total", "", \
	    "Log lines that could not be written, or not in time.") \
	C(BAD_ROWS, "bad_rows_total", "", \
	    "Rows of the store that make no sense, and were skipped.") \
	G(REQUESTS, "requests", "", \
	    "Requests under way, those that wait included.") \
	G(WORKERS_BUSY, "workers_busy", "", \
	    "Programs that run for requests.") \
	G(PROGRAMS_WAITING, "programs_waiting", "", \
	    "Requests that wait for another program to end.") \
	G(JSON_WAITING, "json_waiting", "", \
	    "Requests that wait for memory to compare JSON.") \
	G(REQUESTS_WAITING, "requests_waiting", "", \
	    "Requests that wait for another one with their key to end.") \
	S(KEYS_PENDING, "keys", "state=\"pending\"", \
	    "Keys in the store, by state.") \
	S(KEYS_IN_PROGRESS, "keys", "state=\"in_progress\"", "") \
	S(KEYS_COMPLETED, "keys", "state=\"completed\"", "") \
	S(KEYS_FAILED_RETRYABLE, "keys", "state=\"failed_retryable\"", "") \
	S(KEYS_UNKNOWN, "keys", "state=\"unknown\"", "") \
	S(KEYS_DEAD_LETTER, "keys", "state=\"dead_letter\"", "") \
	S(KEYS_EXPIRED, "keys", "state=\"expired\"", "") \
	S(IN_OUTBOX_PENDING, "outbox", "state=\"pending\"", \
	    "Effects in the outbox, by state.") \
	S(IN_OUTBOX_DELIVERED, "outbox", "state=\"delivered\"", "") \
	S(IN_OUTBOX_DEAD_LETTER, "outbox", "state=\"dead_letter\"", "") \
	S(STORE_BYTES, "store_bytes", "", \
	    "Bytes of the store in use: see max_store.") \
	S(KEPT_BYTES, "kept_bytes", "", \
	    "Bytes of requests that are kept to be run or reconciled.") \
	S(OLDEST_UNKNOWN, "oldest_unknown_seconds", "", \
	    "For how long the oldest unknown key has been so; 0: none.")
/* clang-format on */

enum metrics_id {
#define METRICS_ID(id, ...) METRICS_##id,
	METRICS(METRICS_ID, METRICS_ID, METRICS_ID, METRICS_ID, METRICS_ID,
	    METRICS_ID)
#undef METRICS_ID
	    METRICS_N
};

/* What is counted of a route, with its path as the label "route". */
struct metrics_route;

/*
 * The route of that path.  It exists until the process ends, so that a reload
 * sets no counter back.  One thread at a time may call this.  NULL, which is
 * counted without a label: there is no memory, or all labels together would be
 * too long (LIMIT_METRICS_ROUTES).
 */
struct metrics_route *metrics_route(const char *path);

/* Adds one to a counter; route: NULL if it is not one of each route. */
void metrics_count_route(struct metrics_route *route, enum metrics_id id);
void metrics_count(enum metrics_id id);

/* The sum of a route's counters from first to last; NULL: of what is counted
 * without one. */
int64_t metrics_of_route(const struct metrics_route *route,
    enum metrics_id first, enum metrics_id last);

/* Adds to a counter, or to a gauge of this process; for a gauge it may be
 * negative. */
void metrics_add(enum metrics_id id, int64_t n);

/* Adds one observation to a histogram; route: as above. */
void metrics_observe_route(
    struct metrics_route *route, enum metrics_id id, int64_t value);
void metrics_observe(enum metrics_id id, int64_t value);

/* The values that the store knows.  Only the store's gauges are used. */
struct metrics_gauges {
	int64_t value[METRICS_N]; /* < 0: not known; the sample is left out */
};

/*
 * Appends the text.  stored: appends the store's gauges only, for a process
 * that handles no requests.  RC_OK, RC_LIMIT or RC_NOMEM.
 */
enum rc
metrics_text(const struct metrics_gauges *gauges, bool stored, struct buf *out);

#endif
