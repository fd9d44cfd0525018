/*
 * oncectl forget: deletes one key, or all that the options choose.
 *
 * Many keys are counted first, and the operator is asked.  What was counted is
 * what is deleted: the numbers of the rows are kept, and each row is read again
 * before it goes, because a key may have changed while the question waited.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "oncectl_change.h"
#include "oncectl_log.h"
#include "oncectl_row.h"
#include "plural.h"
#include "oncectl.h"

/* --- one key ------------------------------------------------------------ */

static int
refuse_forget(const struct record *row, enum record_state before)
{
	char *name = oncectl_row_name(row);

	if (row->state == RECORD_IN_PROGRESS || row->state == before)
		warnx("%s is %s: it cannot be forgotten while it runs", name,
		    record_state_name(row->state));
	else
		warnx("%s has become %s: say it again if it shall be forgotten",
		    name, record_state_name(row->state));
	free(name);
	return ONCECTL_REFUSED;
}

static void
log_forget(const struct oncectl *ctl, const struct record *row, enum rc rc)
{
	oncectl_log(ctl,
	    &(struct oncectl_act){
		ONCECTL_ACT_OF(row), .act = "forget", .rc = rc });
}

static int
forget_one(struct oncectl *ctl, struct record *row)
{
	char *name;
	enum rc rc;

	if (row->state == RECORD_IN_PROGRESS) {
		if (!store_owner_is_dead(ctl->store, row->owner))
			return refuse_forget(row, row->state);
		name = oncectl_row_name(row);
		warnx("%s is in_progress, by a process that is gone: "
		      "\"oncectl sweep\" settles it, or says what it waits "
		      "for; then it can be forgotten",
		    name);
		free(name);
		return ONCECTL_REFUSED;
	}
	rc = store_forget(ctl->store, row->id, row->state);
	log_forget(ctl, row, rc);
	if (rc == RC_LOST)
		return oncectl_change_lost(ctl, row, refuse_forget);
	if (rc != RC_OK)
		return oncectl_change_failed(ctl, rc, "show");
	oncectl_change_print(ctl, row, "forgotten", RECORD_NONE);
	return ONCECTL_DONE;
}

/* --- many keys ---------------------------------------------------------- */

struct chosen {
	struct store_filter filter;
	int64_t *ids;
	size_t n, room;
	size_t runs;        /* in progress: they stay */
	int64_t counted_at; /* monotonic clock (ms) */
};

static enum rc
forget_add(struct chosen *c, int64_t id)
{
	const size_t room = c->room != 0 ? 2 * c->room : 1024;
	int64_t *more;

	if (c->n == c->room) {
		more = realloc(c->ids, room * sizeof(*more));
		if (more == NULL)
			return RC_NOMEM;
		c->ids = more;
		c->room = room;
	}
	c->ids[c->n++] = id;
	return RC_OK;
}

static enum rc
forget_count(struct oncectl *ctl, struct chosen *c)
{
	struct store_cursor *cursor = NULL;
	struct record row;
	enum rc rc;

	c->counted_at = clock_mono();
	rc = store_list(ctl->store, &c->filter, &cursor);
	while (rc == RC_OK && (rc = store_list_next(cursor, &row)) == RC_OK) {
		if (row.state == RECORD_IN_PROGRESS)
			c->runs++;
		else
			rc = forget_add(c, row.id);
		record_free(&row);
	}
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Whether the operator answers with a line that begins with y or Y. */
static bool
forget_ask(const struct chosen *c)
{
	int first, next;

	fflush(stdout);
	fprintf(stderr, "forget %zu %s", c->n, PLURAL(c->n, "key", "keys"));
	if (c->runs > 0)
		fprintf(stderr, " (%zu in progress %s)", c->runs,
		    PLURAL(c->runs, "stays", "stay"));
	fputs("? [y/N] ", stderr);
	first = next = getchar();
	while (next != '\n' && next != EOF)
		next = getchar();
	/* An answer without a line's end is none: the input broke off. */
	if (next == EOF)
		fputc('\n', stderr);
	return next == '\n' && (first == 'y' || first == 'Y');
}

/* Reads the row if it is still one of those chosen; else RC_NOTFOUND. */
static enum rc
read_again(
    struct oncectl *ctl, const struct chosen *c, int64_t id, struct record *row)
{
	struct store_filter filter = c->filter;
	struct store_cursor *cursor = NULL;
	enum rc rc;

	filter.id = id;
	if (filter.older_ms > 0) /* as old as it had to be then */
		filter.older_ms += clock_mono() - c->counted_at;
	rc = store_list(ctl->store, &filter, &cursor);
	if (rc == RC_OK)
		rc = store_list_next(cursor, row);
	store_list_free(cursor);
	if (rc == RC_OK && row->state == RECORD_IN_PROGRESS) {
		record_free(row);
		rc = RC_NOTFOUND;
	}
	return rc;
}

/* Deletes n of the keys, from that one on, as far as they are still chosen, and
 * adds their number to *forgotten. */
static enum rc
forget_some(struct oncectl *ctl, const struct chosen *c, size_t first, size_t n,
    size_t *forgotten)
{
	struct store_forgotten keys[STORE_FORGET_MAX];
	struct record rows[STORE_FORGET_MAX];
	size_t m = 0;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		rc = read_again(ctl, c, c->ids[first + i], &rows[m]);
		if (rc == RC_OK) {
			keys[m].id = c->ids[first + i];
			keys[m].from = rows[m].state;
			m++;
		} else if (rc == RC_NOTFOUND)
			rc = RC_OK;
	}
	if (rc == RC_OK && m > 0)
		rc = store_forget_some(ctl->store, keys, m);
	for (size_t i = 0; i < m; i++) {
		log_forget(
		    ctl, &rows[i], rc == RC_OK && !keys[i].done ? RC_LOST : rc);
		if (rc == RC_OK && keys[i].done) {
			(*forgotten)++;
			if (ctl->json)
				oncectl_change_print(
				    ctl, &rows[i], "forgotten", RECORD_NONE);
		}
		record_free(&rows[i]);
	}
	return rc;
}

static int
forget_chosen(struct oncectl *ctl, struct chosen *c)
{
	size_t forgotten = 0, n;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < c->n && rc == RC_OK; i += n) {
		n = c->n - i < STORE_FORGET_MAX ? c->n - i : STORE_FORGET_MAX;
		rc = forget_some(ctl, c, i, n, &forgotten);
	}
	if (!ctl->json)
		printf("%zu %s forgotten\n", forgotten,
		    PLURAL(forgotten, "key", "keys"));
	if (rc != RC_OK && forgotten > 0)
		return oncectl_fail(ctl, rc);
	if (rc != RC_OK)
		return oncectl_change_failed(ctl, rc, "ls");
	if (forgotten < c->n)
		warnx("%zu changed meanwhile, and %s", c->n - forgotten,
		    PLURAL(c->n - forgotten, "stays", "stay"));
	if (c->runs > 0)
		warnx("%zu in progress %s", c->runs,
		    PLURAL(c->runs, "stays", "stay"));
	return ONCECTL_DONE;
}

static int
forget_many(struct oncectl *ctl)
{
	struct chosen chosen;
	int status = ONCECTL_DONE;
	enum rc rc;

	memset(&chosen, 0, sizeof(chosen));
	if (!oncectl_filter(ctl, &chosen.filter))
		return ONCECTL_USAGE;
	if (chosen.filter.state == RECORD_IN_PROGRESS) {
		warnx("forget: a key that is in_progress cannot be forgotten "
		      "while it runs");
		return ONCECTL_REFUSED;
	}
	rc = forget_count(ctl, &chosen);
	if (rc != RC_OK)
		status = oncectl_fail(ctl, rc);
	else if (chosen.n > 0 && (ctl->given & ONCECTL_YES) == 0 &&
	    !forget_ask(&chosen)) {
		warnx("forget: nothing was forgotten");
		status = ONCECTL_REFUSED;
	} else
		status = forget_chosen(ctl, &chosen);
	free(chosen.ids);
	return status;
}

int
oncectl_forget(struct oncectl *ctl)
{
	const unsigned many =
	    ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH | ONCECTL_OLDER;
	struct record row;
	int status;

	if (ctl->nargs == 0 && ctl->downstream == NULL) {
		if ((ctl->given & many) != 0)
			return forget_many(ctl);
		warnx("forget: name a KEY, --downstream, or which keys by "
		      "--state, --scope, --path and --older");
		return ONCECTL_USAGE;
	}
	if ((ctl->given & (ONCECTL_STATE | ONCECTL_OLDER)) != 0) {
		warnx("forget: --state and --older choose many keys, not one "
		      "that is named");
		return ONCECTL_USAGE;
	}
	status = oncectl_row_find(ctl, &row);
	if (status != -1)
		return status;
	status = forget_one(ctl, &row);
	record_free(&row);
	return status;
}
