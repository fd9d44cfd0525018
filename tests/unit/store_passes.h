/*
 * What passes over all keys do, and what metrics and doctor tell of a store.
 *
 * Included by store_fixture.h only.
 */
#ifndef STORE_PASSES_H
#define STORE_PASSES_H

/* --- passes ------------------------------------------------------------- */

/* The first of the keys that the last pass changed; its key is "" for none. */
static UNUSED struct {
	int64_t id;
	char key[64];
	enum record_state from, to;
} changed;

static UNUSED void
note_changes(struct store_change *changes, int n)
{
	memset(&changed, 0, sizeof(changed));
	if (n > 0) {
		changed.id = changes[0].id;
		changed.from = changes[0].from;
		changed.to = changes[0].to;
		snprintf(
		    changed.key, sizeof(changed.key), "%s", changes[0].key);
	}
	store_changes_free(changes, n);
}

/* Recovers at most limit keys: how many there were. */
static UNUSED int
recover_in(struct store *s, int limit)
{
	struct store_change changes[8];
	int n = -1;

	assert_true(limit <= 8);
	assert_ok(store_recover(s, limit, changes, &n));
	note_changes(changes, n);
	return n;
}

static UNUSED int
sweep(struct store *s)
{
	return recover_in(s, 8);
}

/* The same for keys past their retention. */
static UNUSED int
expire(int limit)
{
	struct store_change changes[STORE_EXPIRE_MAX];
	int n = -1;

	assert_ok(store_expire(store, limit, changes, &n));
	note_changes(changes, n);
	return n;
}

/* --- metrics ------------------------------------------------------------ */

/* The value behind that text. */
static UNUSED int64_t
metric(const char *name)
{
	struct metrics_gauges none;
	struct buf text;
	const char *at;
	int64_t n;

	memset(&none, 0xff, sizeof(none));
	buf_init(&text, LIMIT_METRICS);
	assert_ok(metrics_text(&none, false, &text));
	at = strstr(text.data, name);
	assert_non_null(at);
	n = strtoll(at + strlen(name), NULL, 10);
	buf_free(&text);
	return n;
}

static UNUSED int64_t
bad_rows(void)
{
	return metric("\noncewrap_bad_rows_total ");
}

/* --- doctor ------------------------------------------------------------- */

/* The finding of that name, with its text: '+' ok, '-' not, '?' none. */
static UNUSED char
doctor_tells(const char *name, const struct conf *conf, char text[1000])
{
	struct store_finding f[64];
	size_t n;

	assert_ok(store_doctor(store, conf, f, COUNT(f), &n));
	for (size_t i = 0; i < n; i++) {
		assert_true(f[i].text[0] != '\0');
		if (text != NULL)
			snprintf(text, 1000, "%s", f[i].text);
		if (strcmp(f[i].name, name) == 0)
			return f[i].ok ? '+' : '-';
	}
	return '?';
}

static UNUSED char
doctor_says(const char *name)
{
	return doctor_tells(name, NULL, NULL);
}

static UNUSED void
doctor_finds_nothing(void)
{
	struct store_finding f[64];
	size_t n;

	assert_ok(store_doctor(store, NULL, f, COUNT(f), &n));
	for (size_t i = 0; i < n; i++)
		if (!f[i].ok)
			fail_msg("%s: %s", f[i].name, f[i].text);
}

#endif
