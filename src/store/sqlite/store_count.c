/*
 * See store_count.h.  A row whose state is no word of ours is not counted:
 * doctor names it.
 */
#include "config.h"

#include <string.h>

#include "store_count.h"

_Static_assert(STORE_EFFECT_NSTATES <= RECORD_NSTATES, "a walk has room");

/* The states of keys, or of effects. */
struct words {
	const char *(*name)(int state);
	bool (*parse)(const char *, int *state);
};

static const char *
key_name(int state)
{
	return record_state_name((enum record_state)state);
}

static bool
count_parse_state(const char *word, int *state)
{
	enum record_state s;

	if (!record_state_parse(word, &s))
		return false;
	*state = (int)s;
	return true;
}

static const char *
effect_name(int state)
{
	return store_effect_state_name((enum store_effect_state)state);
}

static bool
effect_parse(const char *word, int *state)
{
	enum store_effect_state s;

	if (!store_effect_state_parse(word, &s))
		return false;
	*state = (int)s;
	return true;
}

static const struct words keys = { key_name, count_parse_state };
static const struct words effects = { effect_name, effect_parse };

static enum rc
count_count(struct db *db, enum query query, const struct words *words,
    struct store_count *counts, size_t n)
{
	struct db_stmt *s = db_stmt(db, query);
	struct store_count c;
	const char *word;
	enum rc rc;
	int state;

	memset(counts, 0, n * sizeof(counts[0]));
	while ((rc = db_step_row(s)) == RC_OK) {
		rc = db_rowf(s, "piii", &word, &c.n, &c.oldest, &c.bytes);
		if (rc != RC_OK)
			break;
		if (word != NULL && words->parse(word, &state))
			counts[state] = c;
	}
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_count_keys(
    struct db *db, enum query query, struct store_count counts[RECORD_NSTATES])
{
	return count_count(db, query, &keys, counts, RECORD_NSTATES);
}

enum rc
store_count_effects(struct db *db, enum query query,
    struct store_count counts[STORE_EFFECT_NSTATES])
{
	return count_count(db, query, &effects, counts, STORE_EFFECT_NSTATES);
}

static enum rc
walk(struct db *db, enum query query, const struct words *words,
    struct store_walk *w, int n)
{
	struct db_stmt *s = db_stmt(db, query);
	const char *word;
	enum rc rc = RC_OK;

	db_bindf(s, "isid", w->at, words->name(w->state), w->id, n);
	for (; n > 0 && rc == RC_OK; n--) {
		if ((rc = db_step_row(s)) != RC_OK)
			break;
		rc = db_rowf(s, "ipi", &w->at, &word, &w->id);
		if (rc == RC_OK &&
		    (word == NULL || !words->parse(word, &w->state)))
			rc = RC_CORRUPT;
		if (rc == RC_OK)
			w->sum[w->state]++;
	}
	db_reset(s);
	return rc;
}

enum rc
store_walk_keys(struct db *db, struct store_walk *w, int n)
{
	return walk(db, QUERY_TALLY, &keys, w, n);
}

enum rc
store_walk_effects(struct db *db, struct store_walk *w, int n)
{
	return walk(db, QUERY_TALLY_EFFECTS, &effects, w, n);
}
