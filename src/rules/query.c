/*
 * Query strings.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "form.h"
#include "query.h"

static bool
query_is_one_of(const struct form *form, const char *const *name, size_t n)
{
	size_t i;

	for (i = 0; i < n && form->is_named; i++)
		if (strlen(name[i]) == form->name.len &&
		    memcmp(name[i], form->name.data, form->name.len) == 0)
			return true;
	return false;
}

enum rc
query_without(
    const char *query, const char *const *name, size_t n, struct buf *out)
{
	bool skipping = false, first = true;
	enum form_event event = FORM_NEED;
	enum rc rc = RC_OK;
	struct form form;

	if (n == 0)
		return buf_adds(out, query);
	form_init(&form, FORM_URLENCODED, NULL);
	form_feed(&form, query, strlen(query));
	while (rc == RC_OK && event != FORM_END) {
		event = form_next(&form);
		if (event == FORM_NEED) {
			form_finish(&form);
		} else if (event == FORM_NO_MEMORY) {
			rc = RC_NOMEM;
		} else if (event == FORM_FIELD) {
			skipping = query_is_one_of(&form, name, n);
			if (skipping)
				continue;
			if (!first)
				rc = buf_addc(out, '&');
			first = false;
			if (rc == RC_OK)
				rc = buf_add(out, form.raw.data, form.raw.len);
		} else if (event == FORM_DATA && !skipping) {
			rc = buf_add(out, form.data, form.len);
		}
	}
	form_free(&form);
	return rc;
}
