/*
 * See oncectl_many.h.
 */
#include "config.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oncectl_change.h"
#include "oncectl_log.h"
#include "words.h"
#include "oncectl_many.h"

struct many {
	struct oncectl *ctl;
	const struct oncectl_many *how;
	struct store_filter filter;
	struct store_chosen *keys;
	size_t n, room;
	size_t runs; /* in progress: they stay */
	size_t done;
};

static enum rc
many_add(struct many *m, const struct record *r)
{
	const size_t room = m->room != 0 ? 2 * m->room : 1024;
	struct store_chosen *more;

	if (m->n == m->room) {
		more = realloc(m->keys, room * sizeof(*more));
		if (more == NULL)
			return RC_NOMEM;
		m->keys = more;
		m->room = room;
	}
	m->keys[m->n++] = (struct store_chosen){
		.id = r->id, .attempt = r->attempt, .from = r->state
	};
	return RC_OK;
}

/* Adds the keys that the filter finds. */
static enum rc
many_find(struct many *m)
{
	struct store_cursor *cursor = NULL;
	struct record row;
	enum rc rc;

	rc = store_list(m->ctl->store, &m->filter, &cursor);
	while (rc == RC_OK && (rc = store_list_next(cursor, &row)) == RC_OK) {
		if (row.state == RECORD_IN_PROGRESS)
			m->runs++;
		else
			rc = many_add(m, &row);
		record_free(&row);
	}
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
many_count(struct many *m)
{
	const struct oncectl_many *how = m->how;
	enum rc rc = RC_OK;

	if (m->filter.state != RECORD_NONE)
		return many_find(m);
	for (size_t i = 0; i < how->nstates && rc == RC_OK; i++) {
		m->filter.state = how->states[i];
		rc = many_find(m);
	}
	return rc;
}

/* Whether the operator answers with a line that begins with y or Y. */
static bool
many_ask(const struct many *m)
{
	int first, next;

	fflush(stdout);
	fprintf(stderr, "%s %zu %s", m->ctl->command, m->n,
	    PLURAL(m->n, "key", "keys"));
	if (m->how->to != RECORD_NONE)
		fputs(" as not executed", stderr);
	if (m->runs > 0)
		fprintf(stderr, " (%zu in progress %s)", m->runs,
		    PLURAL(m->runs, "stays", "stay"));
	fputs("? [y/N] ", stderr);
	first = next = getchar();
	while (next != '\n' && next != EOF)
		next = getchar();
	/* An answer without a line's end is none: the input broke off. */
	if (next == EOF)
		fputc('\n', stderr);
	return next == '\n' && (first == 'y' || first == 'Y');
}

/* The act on a key is over. */
static void
many_tell(struct many *m, const struct store_chosen *key,
    const struct record *row, enum rc rc)
{
	const struct oncectl_many *how = m->how;

	if (key->done)
		m->done++;
	if (row->id == 0)
		return;
	if (key->done)
		rc = RC_OK;
	else if (rc == RC_OK)
		rc = RC_LOST;
	oncectl_log(m->ctl,
	    &(struct oncectl_act){
		ONCECTL_ACT_OF(row), .act = how->name, .rc = rc });
	if (key->done && m->ctl->json)
		oncectl_change_print(m->ctl, row, how->done, how->to);
}

/* Acts on n keys from that one on. */
static enum rc
many_some(struct many *m, struct store_chosen *keys, size_t n)
{
	struct store *store = m->ctl->store;
	struct record rows[STORE_CHOSEN_MAX];
	enum rc rc = RC_OK;

	memset(rows, 0, sizeof(rows));
	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		rc = store_browse_key(store, keys[i].id, &rows[i], NULL);
		if (rc == RC_NOTFOUND) /* the store sees that, too */
			rc = RC_OK;
	}
	if (rc == RC_OK)
		rc = m->how->act(store, keys, n);
	for (size_t i = 0; i < n; i++) {
		many_tell(m, &keys[i], &rows[i], rc);
		record_free(&rows[i]);
	}
	return rc;
}

static int
many_do(struct many *m)
{
	const size_t most = STORE_CHOSEN_MAX;
	struct oncectl *ctl = m->ctl;
	size_t n, left;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < m->n && rc == RC_OK; i += n) {
		n = m->n - i < most ? m->n - i : most;
		rc = many_some(m, &m->keys[i], n);
	}
	if (!ctl->json)
		printf("%zu %s %s\n", m->done, PLURAL(m->done, "key", "keys"),
		    m->how->done);
	if (rc != RC_OK && m->done > 0)
		return oncectl_fail(ctl, rc);
	if (rc != RC_OK)
		return oncectl_change_failed(ctl, rc, "ls");
	left = m->n - m->done;
	if (left > 0)
		warnx("%zu changed meanwhile, and %s", left,
		    PLURAL(left, "stays", "stay"));
	if (m->runs > 0)
		warnx("%zu in progress %s", m->runs,
		    PLURAL(m->runs, "stays", "stay"));
	return ONCECTL_DONE;
}

/* Whether keys of the state that is chosen may be acted on. */
static bool
many_suits(const struct many *m)
{
	const struct oncectl_many *how = m->how;
	const enum record_state state = m->filter.state;
	bool suits = state == RECORD_NONE;

	for (size_t i = 0; i < how->nstates; i++)
		suits = suits || how->states[i] == state ||
		    (how->states[i] == RECORD_NONE &&
			state != RECORD_IN_PROGRESS);
	if (!suits)
		warnx("%s: a key that is %s cannot be %s", m->ctl->command,
		    record_state_name(state), m->how->done);
	return suits;
}

int
oncectl_many(struct oncectl *ctl, const struct oncectl_many *how)
{
	struct many m = { .ctl = ctl, .how = how };
	int status = ONCECTL_DONE;
	enum rc rc;

	if (!oncectl_filter(ctl, &m.filter))
		return ONCECTL_USAGE;
	if (!many_suits(&m))
		return ONCECTL_REFUSED;
	rc = many_count(&m);
	if (rc != RC_OK)
		status = oncectl_fail(ctl, rc);
	else if (m.n > 0 && (ctl->given & ONCECTL_YES) == 0 && !many_ask(&m)) {
		warnx("%s: no key was %s", ctl->command, how->done);
		status = ONCECTL_REFUSED;
	} else
		status = many_do(&m);
	free(m.keys);
	return status;
}
