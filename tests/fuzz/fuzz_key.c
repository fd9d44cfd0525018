/*
 * Any bytes as an Idempotency-Key field.  A key that is accepted
 *
 *  -	holds only what a String can, within the limits,
 *  -	is the same key when written out as a String,
 *  -	is no key when a web server joins the field with itself,
 *
 * and a field that is a key with `key_syntax = string` is the same with `any`.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "key.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
check_key(const struct key *key)
{
	size_t i;

	assert(key->len >= 1);
	assert(key->len <= LIMIT_KEY);
	assert(key->text[key->len] == '\0');
	for (i = 0; i < key->len; i++)
		assert(key->text[i] >= 0x20 && key->text[i] <= 0x7e);
}

static void
check_as_string(const struct key *key)
{
	struct key again;
	struct buf text;
	size_t i;

	buf_init(&text, 2 * LIMIT_KEY + 2);
	assert(buf_addc(&text, '"') == RC_OK);
	for (i = 0; i < key->len; i++) {
		if (key->text[i] == '"' || key->text[i] == '\\')
			assert(buf_addc(&text, '\\') == RC_OK);
		assert(buf_addc(&text, key->text[i]) == RC_OK);
	}
	assert(buf_addc(&text, '"') == RC_OK);
	assert(key_read(text.data, CONF_SYNTAX_STRING, &again) == KEY_OK);
	assert(strcmp(again.text, key->text) == 0);
	buf_free(&text);
}

static void
check_joined(const char *value)
{
	struct key key;
	struct buf text;

	buf_init(&text, 2 * strlen(value) + 2);
	assert(buf_addf(&text, "%s, %s", value, value) == RC_OK);
	assert(key_read(text.data, CONF_SYNTAX_ANY, &key) == KEY_LIST);
	assert(key.len == 0);
	buf_free(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *value = malloc(size + 1);
	struct key any, string;
	enum key_verdict v;

	if (value == NULL)
		return 0;
	if (size > 0)
		memcpy(value, data, size);
	value[size] = '\0';

	v = key_read(value, CONF_SYNTAX_ANY, &any);
	assert(*key_verdict_text(v) != '\0');
	if (v == KEY_OK) {
		check_key(&any);
		check_as_string(&any);
		check_joined(value);
	} else {
		assert(any.len == 0 && any.text[0] == '\0');
	}

	if (key_read(value, CONF_SYNTAX_STRING, &string) == KEY_OK)
		assert(v == KEY_OK && strcmp(any.text, string.text) == 0);
	free(value);
	return 0;
}
