/*
 * ahead: a server's clock within and beyond the limit, by what a process knows.
 */
#include "config.h"

#include "cases.h"

#include "ahead.h"

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define NOW    INT64_C(784111777000)
#define JUMP   (NOW + 25 * HOUR)
#define FAR    INT64_MAX

static const struct {
	const char *name;
	struct ahead a; /* clock limit held_at expected wall own first */
	enum ahead_verdict verdict;
} rows[] = {
	{ "no limit yet", { NOW, FAR, 0, 0, 0, 0, false }, AHEAD_FOLLOW },
	{ "up to the limit", { NOW, NOW, 0, 0, 0, 0, false }, AHEAD_FOLLOW },
	{ "gone back far", { 7, NOW, 0, NOW, NOW, 0, true }, AHEAD_FOLLOW },
	{ "back, after a jump", { NOW, NOW, JUMP, 0, 0, 0, false },
	    AHEAD_FOLLOW },

	{ "a jump", { JUMP, NOW, 0, NOW, NOW, 0, true }, AHEAD_HOLD },
	{ "a jump of the host's clock too",
	    { JUMP, NOW, 0, NOW, JUMP, 0, true }, AHEAD_HOLD },
	{ "a jump that is known", { JUMP, NOW, JUMP, NOW, JUMP, 0, true },
	    AHEAD_HOLD },
	{ "no beat for long", { JUMP, NOW, 0, JUMP, NOW, 0, true },
	    AHEAD_FOLLOW },
	{ "no beat for long, 5 min more",
	    { JUMP, NOW, 0, JUMP - 5 * MINUTE, NOW, 0, true }, AHEAD_FOLLOW },
	{ "no beat for long, and more than that",
	    { JUMP, NOW, 0, JUMP - 5 * MINUTE - 1, NOW, 0, true }, AHEAD_HOLD },
	{ "no beat for long, and less than that",
	    { JUMP, NOW, 0, JUMP + 5 * MINUTE + 1, NOW, 0, true }, AHEAD_HOLD },
	{ "back to beyond the limit",
	    { NOW + HOUR, NOW, JUMP, NOW + HOUR, 0, 0, true }, AHEAD_FOLLOW },

	{ "a start, and others may know", { JUMP, NOW, 0, 0, JUMP, 0, false },
	    AHEAD_WAIT },
	{ "a start after a month", { JUMP, NOW, 0, 0, JUMP, 0, true },
	    AHEAD_FOLLOW },
	{ "a start, and the host disagrees", { JUMP, NOW, 0, 0, NOW, 0, true },
	    AHEAD_HOLD },
	{ "the same later", { JUMP + 1, NOW, JUMP, 0, NOW, JUMP, true },
	    AHEAD_HOLD },
	{ "then the host's clock is set",
	    { JUMP + 1, NOW, JUMP, 0, JUMP, JUMP, true }, AHEAD_FOLLOW },
	{ "a start, and others have found it",
	    { JUMP, NOW, JUMP, 0, JUMP, 0, true }, AHEAD_HOLD },
	{ "the same later, without the host",
	    { JUMP + HOUR, NOW, JUMP, 0, JUMP + HOUR, 0, true }, AHEAD_HOLD },
	{ "a start, others have found it, and it is back",
	    { NOW + HOUR, NOW, JUMP, 0, NOW + HOUR, 0, false }, AHEAD_FOLLOW },
	{ "a start, it has gone back, and the host disagrees",
	    { NOW + HOUR, NOW, JUMP, 0, NOW, 0, false }, AHEAD_HOLD },
};

TEST(every_clock)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (ahead_judge(&rows[i].a) != rows[i].verdict)
			fail_msg("%s", rows[i].name);
}
