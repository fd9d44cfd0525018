/*
 * See refusals.h.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "clock.h"
#include "crowds.h"
#include "refused.h"

#include "refusals.h"

static bool
is_refused(const char *line, int64_t now)
{
	char other[REFUSED_LINE];

	for (size_t i = 0; refused_line(i, now, other); i++)
		if (strcmp(line, other) == 0)
			return true;
	return false;
}

void
refusals(struct store *store, const struct conf *conf,
    void (*say)(void *arg, const char *line), void *arg)
{
	char line[REFUSED_LINE], open[CROWDS_MAX][REFUSED_LINE];
	const int64_t now = clock_mono();
	const size_t n = crowds_open(store, conf, open);

	for (size_t i = 0; refused_line(i, now, line); i++)
		say(arg, line);
	for (size_t i = 0; i < n; i++)
		if (!is_refused(open[i], now))
			say(arg, open[i]);
}
