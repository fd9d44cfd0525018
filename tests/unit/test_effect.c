/*
 * effect: each change of an effect, from each kind of row; and who has the
 * turn after it.
 */
#include "config.h"

#include "cases.h"

#include "effect.h"

#define NOW 100000

static const struct step_time at = { .now = NOW, .wall = 7, .age = NOW };

/* The kinds of rows that an effect has. */
enum row { WAITS, DUE, LATER, TRIED, DELIVERED, DEAD, NROWS };

/* The third of its key, tried twice before. */
static struct effect
sample(enum row row)
{
	struct effect e = {
		.id = 3,
		.key_id = 1,
		.state = row == DELIVERED ? EFFECT_DELIVERED
		    : row == DEAD         ? EFFECT_DEAD_LETTER
					  : EFFECT_PENDING,
		.attempts = 2,
		.has_turn = row == DUE || row == LATER,
		.next_at = row == LATER ? NOW + 1
		    : row == DUE        ? NOW
					: 0,
		.owner = row == TRIED ? 9 : 0,
		.updated_at = 1,
	};

	assert_true(effect_is_sound(&e));
	return e;
}

static struct effect
other(int64_t id, enum row row)
{
	struct effect e = sample(row);

	e.id = id;
	return e;
}

static const struct effect_try try = { .attempts = 2, .owner = 9 };

static const struct effect_end again = {
	.state = EFFECT_PENDING,
	.after = 50,
	.last_error = "no luck",
};
static const struct effect_end delivered = {
	.state = EFFECT_DELIVERED,
	.reference = "r\0f",
	.reference_len = 3,
	.last_error = "unused",
};
static const struct effect_end dead = {
	.state = EFFECT_DEAD_LETTER,
	.last_error = "no luck",
};

/* --- every change from every row ------------------------------------------ */

/* first and holder: as effect.h has them, or NULL. */
typedef enum rc
step_fn(struct effect *e, struct effect *first, struct effect *holder);

#define STEP(name, call)                                                   \
	static enum rc name(struct effect *e, UNUSED struct effect *first, \
	    UNUSED struct effect *holder)                                  \
	{                                                                  \
		return call;                                               \
	}

STEP(begin, effect_step_begin(e, &try, at))
STEP(end_again, effect_step_end(e, first, &try, &again, at))
STEP(end_delivered, effect_step_end(e, first, &try, &delivered, at))
STEP(end_dead, effect_step_end(e, first, &try, &dead, at))
STEP(lost, effect_step_free(e, first, at))
STEP(retry, effect_step_retry(e, first, holder, at))
STEP(drop, effect_step_drop(e, first, at))

#define IN(row) (1u << (row))

/* From which rows each is possible, and what the row is then. */
static const struct {
	const char *name;
	step_fn *step;
	unsigned from;
	struct effect to;
} rows[] = {
	{ "begin", begin, IN(DUE),
	    { .state = EFFECT_PENDING, .attempts = 3, .owner = 9 } },
	{ "again", end_again, IN(TRIED),
	    { .state = EFFECT_PENDING,
		.attempts = 2,
		.has_turn = true,
		.next_at = NOW + 50 } },
	/* Without an owner it was freed, and no other try has begun. */
	{ "delivered", end_delivered,
	    IN(TRIED) | IN(DUE) | IN(LATER) | IN(WAITS),
	    { .state = EFFECT_DELIVERED, .attempts = 2 } },
	{ "dead", end_dead, IN(TRIED),
	    { .state = EFFECT_DEAD_LETTER, .attempts = 2 } },
	{ "free", lost, IN(TRIED),
	    { .state = EFFECT_PENDING,
		.attempts = 2,
		.has_turn = true,
		.next_at = NOW } },
	{ "retry", retry, IN(WAITS) | IN(DUE) | IN(LATER),
	    { .state = EFFECT_PENDING,
		.attempts = 2,
		.has_turn = true,
		.next_at = NOW } },
	{ "retry of a dead one", retry, IN(DEAD),
	    { .state = EFFECT_PENDING, .has_turn = true, .next_at = NOW } },
	{ "drop", drop,
	    IN(WAITS) | IN(DUE) | IN(LATER) | IN(DELIVERED) | IN(DEAD),
	    { .state = EFFECT_NONE } },
};

TEST(each_change_is_possible_from_these_rows)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		for (int from = 0; from < NROWS; from++) {
			const struct effect *to = &rows[i].to;
			struct effect e = sample((enum row)from);
			bool may = (rows[i].from & IN(from)) != 0;

			/* Its other row is in the table. */
			if (rows[i].step == retry &&
			    (from == DEAD) != (to->attempts == 0))
				continue;
			if ((rows[i].step(&e, NULL, NULL) == RC_OK) != may)
				fail_msg("%s from %d", rows[i].name, from);
			if (!may) {
				assert_int_equal(e.updated_at, 1);
				continue;
			}
			assert_int_equal(e.state, to->state);
			if (to->state == EFFECT_NONE)
				continue;
			assert_true(effect_is_sound(&e));
			assert_int_equal(e.attempts, to->attempts);
			assert_int_equal(e.has_turn, to->has_turn);
			assert_int_equal(e.next_at, to->next_at);
			assert_int_equal(e.owner, to->owner);
			assert_int_equal(e.updated_at, 7);
			effect_free(&e);
		}
}

TEST(an_end_is_of_its_try)
{
	static const struct effect_try others[] = {
		{ .attempts = 2, .owner = 8 },
		{ .attempts = 1, .owner = 9 },
		{ .attempts = 3, .owner = 9 },
		{ .attempts = 2, .owner = 0 },
	};
	static const struct effect_end *const ends[] = { &again, &delivered,
		&dead };

	for (size_t i = 0; i < COUNT(others); i++)
		for (size_t k = 0; k < COUNT(ends); k++) {
			struct effect e = sample(TRIED);

			assert_int_equal(
			    effect_step_end(&e, NULL, &others[i], ends[k], at),
			    RC_LOST);
			assert_int_equal(e.owner, 9);
		}
}

/* One that two processes have found is begun by one of them. */
TEST(a_beginning_is_of_the_effect_that_was_found)
{
	const struct effect_try found = { .attempts = 1, .owner = 9 };
	struct effect e = sample(DUE);

	assert_int_equal(effect_step_begin(&e, &found, at), RC_LOST);
	assert_int_equal(e.attempts, 2);
}

TEST(what_a_try_leaves)
{
	struct effect e = sample(TRIED);

	assert_ok(end_again(&e, NULL, NULL));
	assert_string_equal(e.last_error, "no luck");
	e.owner = 9;
	e.has_turn = false;
	assert_ok(end_delivered(&e, NULL, NULL));
	assert_null(e.last_error);
	assert_int_equal(e.reference.len, 3);
	assert_memory_equal(e.reference.data, "r\0f", 3);
	effect_free(&e);
}

/* --- the turn ------------------------------------------------------------- */

/* Which effect has the turn, with another one before or after it. */
TEST(a_change_leaves_one_turn)
{
	static const struct {
		step_fn *step;
		enum row row; /* of effect 3 */
		int64_t first;
		enum row first_row;
		int64_t holder; /* 0: none */
		enum row holder_row;
		int64_t has; /* the turn, after it */
		int64_t next_at;
	} cases[] = {
		{ end_again, TRIED, 4, WAITS, 0, 0, 3, NOW + 50 },
		/* an earlier one, which was given up, was retried meanwhile */
		{ end_again, TRIED, 2, WAITS, 0, 0, 2, NOW },
		{ lost, TRIED, 4, WAITS, 0, 0, 3, NOW },
		{ lost, TRIED, 2, WAITS, 0, 0, 2, NOW },
		{ end_delivered, TRIED, 4, WAITS, 0, 0, 4, NOW },
		{ end_delivered, TRIED, 2, WAITS, 0, 0, 2, NOW },
		{ end_dead, TRIED, 4, WAITS, 0, 0, 4, NOW },
		/* freed before: it has the turn, or has it no more */
		{ end_delivered, DUE, 4, WAITS, 0, 0, 4, NOW },
		{ end_delivered, WAITS, 2, LATER, 0, 0, 2, NOW + 1 },
		{ end_delivered, WAITS, 2, TRIED, 0, 0, 2, 0 },
		{ retry, DEAD, 4, LATER, 0, 0, 3, NOW },
		{ retry, DEAD, 2, LATER, 0, 0, 2, NOW },
		{ retry, WAITS, 2, LATER, 0, 0, 2, NOW },
		{ retry, LATER, 4, WAITS, 0, 0, 3, NOW },
		/* a try is not disturbed */
		{ retry, DEAD, 4, TRIED, 0, 0, 4, 0 },
		{ retry, DEAD, 2, WAITS, 5, TRIED, 5, 0 },
		{ retry, WAITS, 2, TRIED, 0, 0, 2, 0 },
		{ retry, DEAD, 4, WAITS, 5, LATER, 3, NOW },
		{ drop, DUE, 4, WAITS, 0, 0, 4, NOW },
		{ drop, WAITS, 2, LATER, 0, 0, 2, NOW + 1 },
		{ drop, WAITS, 2, TRIED, 0, 0, 2, 0 },
		{ drop, DEAD, 4, LATER, 0, 0, 4, NOW + 1 },
		{ drop, DELIVERED, 4, DUE, 0, 0, 4, NOW },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct effect all[3] = { sample(cases[i].row),
			other(cases[i].first, cases[i].first_row),
			other(cases[i].holder, cases[i].holder_row) };
		struct effect *holder = cases[i].holder != 0 ? &all[2] : NULL;
		int turns = 0;

		assert_ok(cases[i].step(&all[0], &all[1], holder));
		for (int k = 0; k < (holder != NULL ? 3 : 2); k++) {
			const struct effect *e = &all[k];

			if (e->state != EFFECT_PENDING ||
			    (!e->has_turn && e->owner == 0))
				continue;
			turns++;
			if (e->id != cases[i].has ||
			    e->next_at != cases[i].next_at)
				fail_msg("case %zu: %d has it", i, (int)e->id);
		}
		if (turns != 1)
			fail_msg("case %zu: %d turns", i, turns);
		effect_free(&all[0]);
	}
}

/* --- how a try went ------------------------------------------------------- */

TEST(what_a_try_comes_to)
{
	const struct conf_effect conf = { .attempts = 3, .backoff = 1000 };
	static const struct {
		const char *name;
		struct run_facts run;
		bool not_run, stopping;
		int attempts;
		enum effect_state to;
		int64_t after;
		const char *why;
	} cases[] = {
		{ "exit 0", { .end = RUN_EXITED }, .attempts = 1,
		    .to = EFFECT_DELIVERED, .why = "" },
		{ "exit 0 in the last try, while it stops",
		    { .end = RUN_EXITED }, .stopping = true, .attempts = 3,
		    .to = EFFECT_DELIVERED, .why = "" },
		{ "exit 1", { .end = RUN_EXITED, .exit_status = 1 },
		    .attempts = 1, .to = EFFECT_PENDING, .after = 1000,
		    .why = "the program exited with 1" },
		{ "exit 1 while it stops",
		    { .end = RUN_EXITED, .exit_status = 1 }, .stopping = true,
		    .attempts = 2, .to = EFFECT_PENDING, .after = 2000,
		    .why = "the program exited with 1" },
		{ "exit 1 in the last try",
		    { .end = RUN_EXITED, .exit_status = 1 }, .attempts = 3,
		    .to = EFFECT_DEAD_LETTER,
		    .why = "the program exited with 1" },
		{ "signal", { .end = RUN_SIGNALED, .signal = 9 }, .attempts = 4,
		    .to = EFFECT_DEAD_LETTER,
		    .why = "the program was killed by signal 9" },
		{ "timeout", { .end = RUN_TIMEOUT }, .attempts = 2,
		    .to = EFFECT_PENDING, .after = 2000,
		    .why = "the program took too long" },
		{ "cut", { .end = RUN_CUT }, .attempts = 1,
		    .to = EFFECT_PENDING, .after = 1000,
		    .why = "the program printed too much" },
		{ "output", { .end = RUN_OUTPUT_LIMIT }, .attempts = 1,
		    .to = EFFECT_PENDING, .after = 1000,
		    .why = "the program printed too much" },
		{ "lost output", { .end = RUN_CAPTURE_FAILED }, .attempts = 1,
		    .to = EFFECT_PENDING, .after = 1000,
		    .why = "what the program printed was lost" },
		{ "drained in the last try", { .end = RUN_DRAINED },
		    .attempts = 3, .to = EFFECT_PENDING,
		    .why = "oncewrap was stopped" },
		{ "not started", { .end = RUN_NOT_STARTED }, .attempts = 1,
		    .to = EFFECT_PENDING, .after = 1000,
		    .why = "the program could not be started" },
		{ "not started in the last try", { .end = RUN_NOT_STARTED },
		    .attempts = 3, .to = EFFECT_DEAD_LETTER,
		    .why = "the program could not be started" },
		{ "not started while it stops", { .end = RUN_NOT_STARTED },
		    .stopping = true, .attempts = 3, .to = EFFECT_PENDING,
		    .why = "oncewrap was stopped" },
		{ "not run", .not_run = true, .stopping = true, .attempts = 1,
		    .to = EFFECT_PENDING, .after = 1000, .why = "no payload" },
		{ "not run in the last try", .not_run = true, .attempts = 3,
		    .to = EFFECT_DEAD_LETTER, .why = "no payload" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct effect_run run = {
			.facts = cases[i].not_run ? NULL : &cases[i].run,
			.stopping = cases[i].stopping,
			.attempts = cases[i].attempts,
		};
		struct effect_end end = { .after = -1 };

		if (cases[i].not_run)
			strcpy(end.last_error, "no payload");
		effect_judge(&end, &conf, &run);
		if (end.state != cases[i].to || end.after != cases[i].after ||
		    strcmp(end.last_error, cases[i].why) != 0)
			fail_msg("%s: %s after %d: %s", cases[i].name,
			    effect_state_name(end.state), (int)end.after,
			    end.last_error);
	}
}

/* --- rows ----------------------------------------------------------------- */

#define BROKEN(row, change)                          \
	do {                                         \
		struct effect e = sample(row);       \
                                                     \
		change;                              \
		if (effect_is_sound(&e))             \
			fail_msg(#row ": " #change); \
	} while (0)

TEST(rows_that_make_no_sense)
{
	char byte = 'x';
	const struct buf reference = { .data = &byte, .len = 1 };

	BROKEN(DELIVERED, e.has_turn = true);
	BROKEN(TRIED, e.has_turn = true);
	BROKEN(TRIED, e.attempts = 0);
	BROKEN(TRIED, e.state = EFFECT_DEAD_LETTER);
	BROKEN(TRIED, e.reference = reference);
	BROKEN(TRIED, e.id = 0);
	BROKEN(TRIED, e.state = EFFECT_NONE);
}

TEST(names_of_states)
{
	enum effect_state s;

	for (int i = EFFECT_PENDING; i < EFFECT_NSTATES; i++) {
		assert_true(effect_state_parse(
		    effect_state_name((enum effect_state)i), &s));
		assert_int_equal(s, i);
	}
	assert_false(effect_state_parse("none", &s));
	assert_false(effect_state_parse("", &s));
}
