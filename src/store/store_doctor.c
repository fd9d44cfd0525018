/*
 * Findings about the keys and effects of a store, for an operator.  Each store
 * adds those about its files, or its server.
 */
#include "config.h"

#include <string.h>

#include "findings.h"
#include "store_ops.h"

/* Rows that a look at all rows reads at a time. */
#define PAGE INT64_C(500)

/* --- numbers -------------------------------------------------------------- */

/* What one statement counts. */
struct numbers {
	enum tx_query query;
	int64_t n[5];
};

static enum rc
doctor_numbers_run(struct tx *tx, void *arg)
{
	struct numbers *c = arg;
	int64_t *n = c->n;
	enum rc rc;

	memset(n, 0, sizeof(c->n));
	tx_send(tx, c->query, "");
	switch (c->query) {
	case TX_DOCTOR_BODIES:
		rc = tx_one(tx, "ii", &n[0], &n[1]);
		break;
	case TX_DOCTOR_EFFECTS:
		rc = tx_one(tx, "iiii", &n[0], &n[1], &n[2], &n[3]);
		break;
	case TX_COUNT_OPEN:
		rc = tx_one(tx, "iii", &n[0], &n[1], &n[2]);
		break;
	default:
		rc = tx_one(tx, "iiiii", &n[0], &n[1], &n[2], &n[3], &n[4]);
	}
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

static enum rc
doctor_count(struct store *s, enum tx_query query, struct numbers *c)
{
	c->query = query;
	return store_tx_read(s, doctor_numbers_run, c);
}

static void
doctor_numbers(struct store *s, struct findings *f)
{
	int64_t effects[EFFECT_NSTATES];
	struct numbers c;
	const int64_t *n = c.n;
	enum rc rc;

	rc = doctor_count(s, TX_DOCTOR_BODIES, &c);
	findings_bodies(f, rc, &(struct findings_bodies){ n[0], n[1] });
	rc = doctor_count(s, TX_DOCTOR_REQUESTS, &c);
	findings_requests(
	    f, rc, &(struct findings_requests){ n[0], n[1], n[2], n[3], n[4] });
	rc = doctor_count(s, TX_COUNT_OPEN, &c);
	findings_open(f, rc, &(struct findings_open){ n[0], n[1], n[2] });
	rc = store_count_effects(s, effects);
	findings_outbox(
	    f, rc, effects[EFFECT_PENDING], effects[EFFECT_DEAD_LETTER]);
	rc = doctor_count(s, TX_DOCTOR_EFFECTS, &c);
	findings_effects(
	    f, rc, &(struct findings_effects){ n[0], n[1], n[2], n[3] });
}

/* --- all rows ------------------------------------------------------------- */

struct all_rows {
	struct store *store;
	bool effects;
	int64_t at; /* the last row that was read */
	bool end;
	struct findings_rows found;
};

/* Reads the current row; *id: its number. */
static enum rc
doctor_row(struct store *s, struct tx *tx, bool effects, int64_t *id)
{
	struct effect e;
	struct record r;
	enum rc rc;

	if (effects) {
		rc = tx_this_effect(tx, &e);
		*id = e.id;
		effect_free(&e);
		return rc;
	}
	rc = tx_this_record(tx, &r);
	*id = r.id;
	if (rc == RC_OK)
		rc = store_row_check(s, tx, &r);
	record_free(&r);
	return rc;
}

/* Works on a copy, since it may run several times. */
static enum rc
all_rows_run(struct tx *tx, void *arg)
{
	struct all_rows *w = arg, next = *w;
	int64_t rows = 0;
	enum rc rc;

	tx_send(tx, w->effects ? TX_EFFECT_ROWS : TX_ROWS, "ii", next.at, PAGE);
	rc = tx_result(tx);
	while (rc == RC_OK && (rc = tx_next(tx)) == RC_OK) {
		rows++;
		rc = doctor_row(w->store, tx, w->effects, &next.at);
		if (rc == RC_CORRUPT) {
			findings_row(&next.found,
			    w->effects ? "once_effect" : "once_key", next.at);
			rc = RC_OK;
		}
	}
	if (rc != RC_NOTFOUND)
		return rc;
	next.end = rows < PAGE;
	*w = next;
	return RC_OK;
}

static void
doctor_rows(struct store *s, struct findings *f)
{
	struct all_rows w = { .store = s, .at = INT64_MIN };
	enum rc rc = RC_OK;

	while (rc == RC_OK && !w.end)
		rc = store_tx_look(s, all_rows_run, &w);
	w.effects = true;
	w.at = INT64_MIN;
	w.end = false;
	while (rc == RC_OK && !w.end)
		rc = store_tx_look(s, all_rows_run, &w);
	findings_rows(f, rc, &w.found);
}

/* --- topics --------------------------------------------------------------- */

struct topics {
	const struct conf *conf;
	struct findings_topics found;
};

static enum rc
doctor_topics(struct tx *tx, void *arg)
{
	struct topics *t = arg;
	const char *name;
	bool configured;
	int64_t n;
	enum rc rc;

	memset(&t->found, 0, sizeof(t->found));
	tx_send(tx, TX_PENDING_TOPICS, "");
	rc = tx_result(tx);
	while (rc == RC_OK &&
	    (rc = tx_row(tx, "pi?", &name, &n, &configured)) == RC_OK)
		if (name != NULL)
			findings_topic(&t->found, t->conf, name, n, configured);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_doctor(struct store *s, const struct conf *conf,
    struct store_finding *items, size_t max, size_t *n)
{
	struct topics topics = { .conf = conf };
	struct findings f = { items, max, 0 };
	enum rc rc;

	*n = 0;
	if ((rc = store_examine(s, &f)) != RC_OK)
		return rc;
	doctor_rows(s, &f);
	doctor_numbers(s, &f);
	rc = store_tx_read(s, doctor_topics, &topics);
	findings_topics(&f, rc, &topics.found);
	*n = f.n;
	return RC_OK;
}
