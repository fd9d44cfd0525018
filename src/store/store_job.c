/*
 * What is due: jobs, which are accepted keys that workers run; and keys whose
 * outcome reconcilers find out.
 */
#include "config.h"

#include <string.h>

#include "rows.h"
#include "store_admit.h"
#include "store_outcome.h"
#include "uuid.h"

/* --- what is due first: a job, or an effect ------------------------------- */

/*
 * After one was lost to another process, the same one may still be first,
 * because that process has not committed yet.  So the next read steps over as
 * many as were lost in a row.
 */
enum rc
store_next(struct store *s, struct store_next *n)
{
	enum rc rc;

	n->skip = atomic_load(n->lost);
	rc = store_tx(s, TX_LOOK, n->body, n);
	if (n->skip > 0 &&
	    (rc == RC_NOTFOUND || (rc == RC_OK && n->at > n->now))) {
		n->skip = 0;
		atomic_store(n->lost, 0);
		rc = store_tx(s, TX_LOOK, n->body, n);
	}
	return rc;
}

void
store_next_taken(atomic_uint *lost, enum rc rc)
{
	if (rc == RC_LOST)
		atomic_fetch_add(lost, 1);
	else
		atomic_store(lost, 0);
}

/* --- which is next -------------------------------------------------------- */

struct job_next {
	struct store_next next; /* first */
	int64_t from;           /* no key is queued for an earlier time */
	struct record *job;
};

static const struct row_member now_of[] = {
	ROW_MEMBER('m', store_next, now),
};

static enum rc
job_next_run(struct tx *tx, void *arg)
{
	struct job_next *n = arg;
	enum rc rc;

	record_free(n->job);
	memset(n->job, 0, sizeof(*n->job));
	tx_send(tx, TX_JOB_NEXT, "iiz", n->next.skip, n->from, tx->at.now);
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_record(tx, n->job);
	if (rc == RC_OK)
		rc = tx_members(tx, now_of, 1, &n->next);
	n->next.at = n->job->queued_at;
	return rc;
}

enum rc
store_job_next(struct store *s, struct record *job)
{
	struct job_next n = {
		.next = { .body = job_next_run,
		    .lost = &store_base(s)->jobs_lost },
		.from = store_base(s)->queued_from,
		.job = job,
	};
	enum rc rc;

	memset(job, 0, sizeof(*job));
	rc = store_next(s, &n.next);
	if (rc == RC_OK && n.next.at <= n.next.now)
		return RC_OK;
	record_free(job);
	memset(job, 0, sizeof(*job));
	if (rc != RC_OK)
		return rc;
	job->queued_at = n.next.at;
	return RC_NOTFOUND;
}

/* --- start: a worker takes the lease -------------------------------------- */

struct start {
	const struct record *job;
	const struct store_reservation *what;
	int64_t owner;
	struct store_lease *lease;
};

/* A row that another transaction has locked is not waited for: that one takes
 * the job. */
static enum rc
start_run(struct tx *tx, void *arg)
{
	const struct start *st = arg;
	char token[RECORD_TOKEN_LEN + 1];
	struct step_terms terms;
	struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_change_read(tx, st->job->id, false, &r);

	if (rc != RC_OK)
		return rc;
	was = r;
	uuid_digits(token);
	rows_terms(st->what, token, st->owner, &terms);
	rc = step_start(&r, st->job->attempt, &terms, tx->at, &s);
	if (rc == RC_OK)
		rc = store_change_write(tx, &was, &r, &s, NULL);
	if (rc == RC_OK) {
		rows_lease(&r, st->lease);
		tx->did |= TX_AGAIN;
	}
	record_free(&r);
	return rc;
}

enum rc
store_job_start(struct store *s, const struct record *job,
    const struct store_reservation *what, struct store_lease *lease)
{
	struct start st = { .job = job, .what = what, .lease = lease };
	struct liveness *liveness;
	enum rc rc;

	memset(lease, 0, sizeof(*lease));
	store_admit_check(what, true);
	if ((rc = store_liveness(s, &liveness)) != RC_OK)
		return rc;
	st.owner = liveness_self(liveness);
	rc = store_tx(s, TX_WRITE | TX_BEGINS, start_run, &st);
	if (rc == RC_PENDING) {
		store_outcome_release(s, lease, what->retention, 0);
		rc = RC_IO;
	}
	store_next_taken(&store_base(s)->jobs_lost, rc);
	return rc;
}

/* --- jobs that no worker has claimed -------------------------------------- */

struct abandoned {
	struct record *job;
	int64_t now;
};

static enum rc
abandoned_run(struct tx *tx, void *arg)
{
	const struct abandoned *a = arg;
	enum rc rc;

	tx_send(tx, TX_JOB_ABANDONED, "i", a->now);
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_record(tx, a->job);
	return rc;
}

enum rc
store_job_abandoned(struct store *s, struct record *job)
{
	struct abandoned a = { job, store_now(s) };

	memset(job, 0, sizeof(*job));
	return store_tx(s, TX_LOOK, abandoned_run, &a);
}

/* --- keys to reconcile ---------------------------------------------------- */

struct due {
	int64_t host, after; /* after the caller of that number */
	struct record *key;
	int64_t first, now; /* when a key is due first; 0: there is none */
};

static enum rc
due_after(struct tx *tx, const struct due *d, int64_t caller)
{
	enum rc rc;

	tx_send(tx, TX_RECONCILE_DUE, "zii", tx->at.now, caller, d->host);
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_record(tx, d->key);
	return rc;
}

static enum rc
due_run(struct tx *tx, void *arg)
{
	struct due *d = arg;
	enum rc rc;

	memset(d->key, 0, sizeof(*d->key));
	d->first = 0;
	tx_send(tx, TX_RECONCILE_FIRST, "zi", tx->at.now, d->host);
	if ((rc = tx_one(tx, "mm", &d->first, &d->now)) != RC_OK)
		return rc;
	if (d->first > d->now)
		return RC_NOTFOUND;
	rc = due_after(tx, d, d->after);
	return rc == RC_NOTFOUND ? due_after(tx, d, INT64_MIN) : rc;
}

enum rc
store_due(struct store *s, int64_t after, struct record *key)
{
	struct due d = { .after = after, .key = key };
	struct liveness *liveness;
	enum rc rc;

	memset(key, 0, sizeof(*key));
	/* With a server, an operator may not have looked for this host's files
	 * yet.  Without them no key of its attempts is due here. */
	if (store_base(s)->file == NULL)
		(void)store_liveness(s, &liveness);
	d.host = store_base(s)->host;
	rc = store_tx(s, TX_READ, due_run, &d);
	if (rc == RC_NOTFOUND)
		key->reconcile_after = d.first;
	return rc;
}

/* Sets the time of a reconciler's next try at a key, and counts the try that
 * begins now. */
struct claim {
	int64_t id, after;
	struct store_tries tries;
	bool count;
};

static enum rc
claim_run(struct tx *tx, void *arg)
{
	const struct claim *c = arg;
	const struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_change_read(tx, c->id, false, &r);

	if (rc != RC_OK)
		return rc;
	was = r;
	rc = step_claim(
	    &r, c->tries.attempt, c->tries.tries, c->count, c->after, tx->at);
	if (rc == RC_OK)
		rc = store_change_write(tx, &was, &r, &s, NULL);
	record_free(&r);
	return rc;
}

enum rc
store_claim(struct store *s, int64_t id, struct store_tries *tries, bool count,
    int64_t after)
{
	struct claim c = { id, after, *tries, count };
	enum rc rc = store_tx(s, TX_WRITE, claim_run, &c);

	if (rc == RC_OK && count)
		tries->tries++;
	return rc;
}
