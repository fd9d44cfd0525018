/*
 * A configuration from a text.  Included by tests only.
 */
#ifndef CONF_FIXTURE_H
#define CONF_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conf.h"

static struct conf *
conf_from(const char *text)
{
	struct conf_error err = { "" };
	struct conf *conf = conf_parse("f", text, strlen(text), &err);

	if (conf == NULL)
		fail_msg("\"%s\" gives \"%s\"", text, err.text);
	assert_string_equal(err.text, "");
	return conf;
}

#endif
