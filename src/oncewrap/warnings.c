/*
 * A line that several routes inherit is warned of by each of them: so equal
 * warnings are one.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#include "warnings.h"

struct warning {
	conf_line line;
	size_t order; /* of equal lines: the first that was added */
	char *text;   /* "option: why" */
};

static void
say_warning(const struct warnings *w, conf_line line, const char *text)
{
	const char *file = w->conf->file;
	char where[256], whole[3072];

	if (file == NULL)
		(void)snprintf(where, sizeof(where), "oncewrap");
	else if (line == 0)
		(void)snprintf(where, sizeof(where), "%.200s", file);
	else
		(void)snprintf(where, sizeof(where), "%.200s:%u", file, line);
	(void)snprintf(whole, sizeof(whole), "%s: warning: %s", where, text);
	log_text(LOG_WARN, whole);
}

void
warnings_add(
    struct warnings *w, conf_line line, const char *option, const char *why)
{
	char text[2560];
	struct warning *more;

	(void)snprintf(text, sizeof(text), "%.100s: %s", option, why);
	more = realloc(w->item, (w->n + 1) * sizeof(*more));
	if (more == NULL) {
		say_warning(w, line, text);
		return;
	}
	w->item = more;
	more[w->n] = (struct warning){ line, w->n, strdup(text) };
	if (more[w->n].text == NULL)
		say_warning(w, line, text);
	else
		w->n++;
}

static int
compare_warnings(const void *a, const void *b)
{
	const struct warning *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* Whether one before it says the same of the same line. */
static bool
is_said(const struct warning *all, size_t i)
{
	for (size_t j = i; j-- > 0 && all[j].line == all[i].line;)
		if (strcmp(all[j].text, all[i].text) == 0)
			return true;
	return false;
}

void
warnings_write(struct warnings *w)
{
	if (w->n > 0)
		qsort(w->item, w->n, sizeof(*w->item), compare_warnings);
	for (size_t i = 0; i < w->n; i++)
		if (!is_said(w->item, i))
			say_warning(w, w->item[i].line, w->item[i].text);
	for (size_t i = 0; i < w->n; i++)
		free(w->item[i].text);
	free(w->item);
}
