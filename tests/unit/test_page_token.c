/*
 * page_token: a token is good for what it was made for, for an hour.
 */
#include "config.h"

#include "cases.h"

#include "page_value.h"

#define NOW INT64_C(1000000000)

static const unsigned char secret[SCOPE_SECRET_LEN] = "a secret of a store";
static const struct page_token forget = { "ann", "h", "forget", 7, "unknown", 1,
	1700000000000 };

TEST(token_is_good_for_an_hour)
{
	static const struct {
		int64_t after;
		bool good;
	} times[] = { { 0, true }, { 1, true }, { PAGE_TOKEN_AGE, true },
		{ PAGE_TOKEN_AGE + 1, false }, { -1, false } };
	char token[PAGE_TOKEN_SIZE];

	page_token_make(&forget, secret, NOW, token);
	for (size_t i = 0; i < COUNT(times); i++)
		assert_int_equal(page_token_is_good(&forget, secret,
				     NOW + times[i].after, token),
		    times[i].good);
}

TEST(token_is_bound_to_all_of_it)
{
	const struct page_token others[] = {
		{ "bob", "h", "forget", 7, "unknown", 1, 1700000000000 },
		{ "annh", "", "forget", 7, "unknown", 1, 1700000000000 },
		{ "ann", "hf", "orget", 7, "unknown", 1, 1700000000000 },
		{ "ann", "g", "forget", 7, "unknown", 1, 1700000000000 },
		{ "ann", "h", "drop", 7, "unknown", 1, 1700000000000 },
		{ "ann", "h", "forget", 8, "unknown", 1, 1700000000000 },
		{ "ann", "h", "forget", 7, "dead_letter", 1, 1700000000000 },
		{ "ann", "h", "forget", 7, "unknown", 2, 1700000000000 },
		{ "ann", "h", "forget", 7, "unknown", 1, 1700000000001 },
	};
	unsigned char other[SCOPE_SECRET_LEN];
	char token[PAGE_TOKEN_SIZE];

	page_token_make(&forget, secret, NOW, token);
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(
		    page_token_is_good(&others[i], secret, NOW, token));
	memcpy(other, secret, sizeof(other));
	other[31] ^= 1;
	assert_false(page_token_is_good(&forget, other, NOW, token));
}

TEST(no_other_text_is_the_token)
{
	static const char *const texts[] = { "", "-", "x", "0-", "3b9aca00",
		"3b9aca00-", "99999999999999999999-0", " 3b9aca00-" };
	char token[PAGE_TOKEN_SIZE], text[2 * PAGE_TOKEN_SIZE];

	page_token_make(&forget, secret, NOW, token);
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_false(
		    page_token_is_good(&forget, secret, NOW, texts[i]));
	for (size_t i = 0; token[i] != '\0'; i++) {
		strcpy(text, token);
		text[i] = text[i] == '1' ? '2' : '1';
		assert_false(page_token_is_good(&forget, secret, NOW, text));
		text[i] = '\0';
		assert_false(page_token_is_good(&forget, secret, NOW, text));
	}
	snprintf(text, sizeof(text), "%s0", token);
	assert_false(page_token_is_good(&forget, secret, NOW, text));
	snprintf(text, sizeof(text), "0%s", token);
	assert_false(page_token_is_good(&forget, secret, NOW, text));
	assert_true(page_token_is_good(&forget, secret, NOW, token));
}

TEST(times_are_whole_seconds)
{
	char text[PAGE_UTC_SIZE];

	page_write_utc(INT64_C(1763632799999), text);
	assert_string_equal(text, "2025-11-20 09:59:59 UTC");
}

TEST(ages_are_short)
{
	static const struct {
		int64_t ms;
		const char *text;
	} ages[] = { { -5, "0 s" }, { 59999, "59 s" }, { 60000, "1 min" },
		{ 3599999, "59 min" }, { 7500000, "2 h 5 min" },
		{ 90000000, "1 d 1 h" } };
	char text[PAGE_AGE_SIZE];

	for (size_t i = 0; i < COUNT(ages); i++) {
		page_write_age(ages[i].ms, text);
		assert_string_equal(text, ages[i].text);
	}
}

TEST(a_cut_text_ends_with_a_whole_character)
{
	static const struct {
		const char *text, *cut;
	} texts[] = { { NULL, "" }, { "123456789", "123456789" },
		{ "1234567890", "123456..." },
		{ "12345\303\2749012", "12345..." },
		{ "1234\303\27490123", "1234\303\274..." },
		{ "\377\377\377\377\377\377\377\377\377\377",
		    "\377\377\377\377\377\377..." } };
	char text[10];

	for (size_t i = 0; i < COUNT(texts); i++) {
		page_write_cut(texts[i].text, text, sizeof(text));
		assert_string_equal(text, texts[i].cut);
	}
}
