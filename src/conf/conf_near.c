/*
 * The distance of Damerau and Levenshtein, where no letter is moved twice.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "conf_near.h"

/* No option has a longer name. */
#define NAME_MAX_LEN 40

static char
fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '-' ? '_' : c;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t
conf_near_distance(const char *a, const char *b)
{
	size_t row[3][NAME_MAX_LEN + 1], *older, *old, *now;
	const size_t na = strlen(a), nb = strlen(b);

	if (na > NAME_MAX_LEN || nb > NAME_MAX_LEN)
		return SIZE_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		older = row[(i + 1) % 3];
		old = row[(i + 2) % 3];
		now = row[i % 3];
		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			const char x = fold(a[i - 1]), y = fold(b[j - 1]);

			now[j] = least(least(old[j], now[j - 1]) + 1,
			    old[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == fold(b[j - 2]) &&
			    y == fold(a[i - 2]))
				now[j] = least(now[j], older[j - 2] + 1);
		}
	}
	return row[na % 3][nb];
}
