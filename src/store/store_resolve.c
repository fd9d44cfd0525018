/*
 * Resolve: a reconciler, a webhook or an operator has found out what a lost
 * attempt did.  The key has no lease.  The change names the attempt, and a
 * reconciler's also the number of tries begun when it read the key: if another
 * try was begun since then, or the key was settled, nothing changes.  An
 * operator may resolve dead letters, too.
 */
#include "config.h"

#include "store_check.h"
#include "store_outcome.h"

static enum rc
resolve_step(const struct outcome_change *o, struct record *r,
    struct step_time at, struct step *s)
{
	const struct step_answer answer = store_outcome_answer(o);
	struct step_reason why = store_outcome_reason(o);

	why.nothing_happened = true;
	if (!step_may_resolve(
		r, o->tries.attempt, o->tries.tries, o->by_operator))
		return RC_LOST;
	return step_resolve(r, o->outcome.state, &answer, &why, at, s);
}

static enum rc
resolve_resolve(struct store *s, int64_t id, const struct store_tries *tries,
    bool by_operator, struct store_outcome **outcome)
{
	struct outcome_change *o;

	if (!store_check_resolve(id, *outcome, by_operator))
		return RC_INVALID;
	o = store_outcome_begin(*outcome, resolve_step, id);
	o->tries = *tries;
	o->by_operator = by_operator;
	return store_outcome_do(s, o, outcome);
}

enum rc
store_resolve(struct store *s, int64_t id, const struct store_tries *tries,
    struct store_outcome **outcome)
{
	return resolve_resolve(s, id, tries, false, outcome);
}

enum rc
store_resolve_by_operator(
    struct store *s, int64_t id, int attempt, struct store_outcome **outcome)
{
	const struct store_tries tries = { .attempt = attempt };

	return resolve_resolve(s, id, &tries, true, outcome);
}
