/*
 * Any bytes as a JSON text.  A canonical form
 *
 *  -	is no longer than the text, but by a 64th,
 *  -	is its own canonical form,
 *  -	is the same inside an array, and with other blanks in front,
 *
 * and what pointers leave out is the same for a text and its canonical form.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "json.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define MOST(size) ((size) + (size) / 64)

static const struct conf_list nothing;

static enum json_verdict
canonicalise(const void *text, size_t len, const struct conf_list *ignore,
    struct buf *out)
{
	struct json *json;
	enum json_verdict v = json_read(&json, text, len);

	if (v == JSON_OK && json_canonical(json, ignore, out) != RC_OK)
		v = JSON_NO_MEMORY;
	json_free(json);
	return v;
}

static void
assert_same(const struct buf *a, const char *bytes, size_t len)
{
	assert(a->len == len && memcmp(a->data, bytes, len) == 0);
}

static void
check_own_form(const struct buf *form)
{
	struct buf again;

	buf_init(&again, form->len);
	assert(
	    canonicalise(form->data, form->len, &nothing, &again) == JSON_OK);
	assert_same(&again, form->data, form->len);
	buf_free(&again);
}

static void
check_inside_array(const uint8_t *data, size_t size, const struct buf *form)
{
	struct buf text, again;
	enum json_verdict v;

	buf_init(&text, size + 5);
	buf_init(&again, MOST(size) + 5);
	assert(buf_adds(&text, " [\n") == RC_OK);
	assert(buf_add(&text, data, size) == RC_OK);
	assert(buf_adds(&text, "\t]") == RC_OK);
	v = canonicalise(text.data, text.len, &nothing, &again);
	/* The deepest texts have no room for one more. */
	if (v == JSON_OK) {
		assert(again.len == form->len + 2);
		assert(memcmp(again.data + 1, form->data, form->len) == 0);
	} else {
		assert(v == JSON_NOT_IJSON);
	}
	buf_free(&text);
	buf_free(&again);
}

static void
check_pointers(const uint8_t *data, size_t size, const struct buf *form)
{
	char a[] = "/a", b[] = "/b/a", c[] = "/0", d[] = "/1/a", e[] = "/";
	char *item[] = { a, b, c, d, e, NULL };
	struct conf_list list = { item, 5 };
	struct buf one, two;

	buf_init(&one, MOST(size));
	buf_init(&two, MOST(size));
	assert(canonicalise(data, size, &list, &one) == JSON_OK);
	assert(canonicalise(form->data, form->len, &list, &two) == JSON_OK);
	assert_same(&one, two.data, two.len);
	assert(one.len <= form->len);
	check_own_form(&one);
	buf_free(&one);
	buf_free(&two);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum json_verdict v;
	struct buf form;

	buf_init(&form, MOST(size));
	v = canonicalise(data, size, &nothing, &form);
	if (v == JSON_OK) {
		check_own_form(&form);
		check_inside_array(data, size, &form);
		check_pointers(data, size, &form);
	} else {
		assert(v == JSON_NOT_IJSON && form.len == 0);
	}
	buf_free(&form);
	return 0;
}
