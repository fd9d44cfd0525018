/*
 * prefer: no bytes end the process, and other preferences before and behind a
 * field change nothing.  A field that is read as Accept: nor do types that we
 * cannot send.  One that is read as Accept-Language: a tag can be a part of a
 * file's name, and the tags are in order.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prefer.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static bool
asks(const char *field)
{
	struct param param = { "HTTP_PREFER", field };
	struct request request;

	memset(&request, 0, sizeof(request));
	request.params = &param;
	request.nparams = 1;
	return prefer_respond_async(&request);
}

static bool
wants_html(const char *field)
{
	struct param param = { "HTTP_ACCEPT", field };
	struct request request;

	memset(&request, 0, sizeof(request));
	request.params = &param;
	request.nparams = 1;
	return prefer_html(&request);
}

static void
check_languages(const char *field)
{
	struct param param = { "HTTP_ACCEPT_LANGUAGE", field };
	struct request request = { .params = &param, .nparams = 1 };
	struct prefer_languages got;
	const char *tag;

	prefer_languages(&request, &got);
	assert(got.n <= PREFER_LANGUAGES);
	for (size_t i = 0; i < got.n; i++) {
		tag = got.item[i].tag;
		assert(*tag != '\0' && strlen(tag) <= PREFER_TAG_LEN);
		assert(
		    tag[strspn(tag, "abcdefghijklmnopqrstuvwxyz0123456789-")] ==
		    '\0');
		assert(*tag != '-');
		assert(i == 0 || got.item[i].weight <= got.item[i - 1].weight);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[][2] = { { "", ", image/png;q=0.5" },
		{ "x/y; a=\"b,c\"; q=1, ", "" }, { ",", "," } };
	static const char *const around[][2] = { { "", ", wait=1" },
		{ "a=\"b,c\"; d, ", "" }, { ",", "," } };
	size_t room = size + 32;
	char *field = malloc(room);
	char *other = malloc(room);
	bool answer, html;

	if (field == NULL || other == NULL)
		goto out;
	/* Requests hold no NUL. */
	memcpy(field, data, size);
	field[size] = '\0';
	answer = asks(field);
	html = wants_html(field);
	check_languages(field);
	for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
		(void)snprintf(
		    other, room, "%s%s%s", around[i][0], field, around[i][1]);
		assert(asks(other) == answer);
		(void)snprintf(
		    other, room, "%s%s%s", types[i][0], field, types[i][1]);
		assert(wants_html(other) == html);
	}
out:
	free(field);
	free(other);
	return 0;
}
