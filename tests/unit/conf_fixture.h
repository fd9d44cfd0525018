/*
 * A configuration from a text.  Included by tests only.
 */
#ifndef CONF_FIXTURE_H
#define CONF_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf.h"

/* A test need not use all of these. */
#define FIXTURE __attribute__((unused))

static FIXTURE struct conf *
conf_from(const char *text)
{
	struct conf_error err = { "" };
	struct conf *conf = conf_parse("f", text, strlen(text), &err);

	if (conf == NULL)
		fail_msg("\"%s\" gives \"%s\"", text, err.text);
	assert_string_equal(err.text, "");
	return conf;
}

/* A list of copies; items ends with NULL. */
static FIXTURE struct conf_list
list_of(const char *const *items)
{
	struct conf_list list = { NULL, 0 };
	size_t n = 0;

	while (items[n] != NULL)
		n++;
	list.item = calloc(n + 1, sizeof(char *));
	assert_non_null(list.item);
	for (; list.n < n; list.n++)
		list.item[list.n] = strdup(items[list.n]);
	return list;
}

static FIXTURE void
list_free(struct conf_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i]);
	free(list->item);
}

#endif
