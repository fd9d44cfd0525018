/*
 * A store in a directory of its own, and the words that its tests are written
 * in.  It is in SQLite, or in PostgreSQL if TEST_DATABASE is set.  Included by
 * tests only.
 */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <sys/prctl.h>
#include <sys/wait.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <sqlite3.h>

#include "clock.h"
#include "handler_api.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "store_module.h"
#include "store_operator.h"
#include "store_outbox.h"

#define SKIP_CASES only_sqlite_skip_some
#include "cases.h"

/* How long a caller waits, ms; tests of that wait less long. */
#ifndef PATIENCE
#define PATIENCE 30000
#endif

#include "store_postgres.h"

#include "only_sqlite.h"

/* The test's folder, and its database: a file in it; or a schema. */
static char dir[64], file[96], schema[64], uri[512];
static struct store *store;

static const char *
textf(const char *, ...) __attribute__((format(printf, 1, 2)));

/* It lives until the eighth next call. */
static UNUSED const char *
textf(const char *format, ...)
{
	static _Thread_local char texts[8][1100];
	static _Thread_local unsigned calls;
	char *text = texts[calls++ % COUNT(texts)];
	va_list ap;

	va_start(ap, format);
	assert_true(vsnprintf(text, sizeof(texts[0]), format, ap) <
	    (int)sizeof(texts[0]));
	va_end(ap);
	return text;
}

static UNUSED struct store_options
options(void)
{
	struct store_options o;

	memset(&o, 0, sizeof(o));
	o.database = is_postgresql() ? uri : file;
	o.mode = 0600;
	o.durability = CONF_DURABILITY_NORMAL;
	o.busy_timeout = PATIENCE;
	o.owner_timeout = 30000;
	o.max_wal = 64 * 1024 * 1024;
	o.create = true;
	return o;
}

static UNUSED struct store *
open_with(struct store_options o)
{
	struct store *s;
	char err[256] = "";

	if (store_open(&s, &o, err, sizeof(err)) != RC_OK)
		fail_msg("%s", err);
	return s;
}

static UNUSED struct store *
open_store(void)
{
	return open_with(options());
}

static UNUSED void
reopen_with(struct store_options o)
{
	store_close(store);
	store = open_with(o);
}

static UNUSED void
reopen(void)
{
	reopen_with(options());
}

static UNUSED void
empty_folder(const char *folder)
{
	char name[400];
	struct dirent *e;
	DIR *d = opendir(folder);

	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(name, sizeof(name), "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.')
			unlink(name);
	}
	if (d != NULL)
		closedir(d);
}

/* Makes the schema of the test anew, with the tables of a store. */
static UNUSED void
new_tables(void)
{
	const struct store_module *module;
	struct store_options o = options();
	char err[512] = "";

	new_schema(schema, true);
	if (store_module_load(&module, err, sizeof(err)) != RC_OK ||
	    module->init(&o, NULL, err, sizeof(err)) != RC_OK)
		fail_msg("%s", err);
}

/* Nothing is left of the test's files. */
static UNUSED void
empty_files(void)
{
	char name[400];
	struct dirent *e;
	DIR *d;

	empty_folder(dir);
	d = opendir(dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.') {
			empty_folder(name);
			rmdir(name);
		}
	}
	if (d != NULL)
		closedir(d);
}

/* Nothing is left of the store. */
static UNUSED void
empty_dir(void)
{
	if (is_postgresql())
		new_tables();
	empty_files();
}

/* For tests that open it themselves. */
static UNUSED int
setup_dir(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR + 1);
	snprintf(dir, sizeof(dir), "/tmp/oncewrap-store-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
#ifdef VFS_H
	vfs_watch(dir);
#endif
	snprintf(file, sizeof(file), "%s/db", dir);
	if (is_postgresql()) {
		snprintf(
		    schema, sizeof(schema), "once_%s", dir + strlen(dir) - 6);
		schema_uri(schema, uri, sizeof(uri));
		setenv("STATE_DIRECTORY", dir, 1);
		new_tables();
	}
	store = NULL;
	return 0;
}

static UNUSED int
setup(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	store = open_store();
	return 0;
}

/* Each commit is synced: for disks that fail. */
static UNUSED int
setup_synced(void **state)
{
	struct store_options o;

	if (setup_dir(state) != 0)
		return -1;
	o = options();
	o.durability = CONF_DURABILITY_FULL;
	store = open_with(o);
	return 0;
}

/* The store has the topics of two effects. */
static UNUSED int
setup_topics(void **state)
{
	char mail[] = "mail", sms[] = "sms";
	char *topics[] = { mail, sms };

	if (setup(state) != 0)
		return -1;
	return store_topics(store, topics, 2, NULL, 0) == RC_OK ? 0 : -1;
}

static UNUSED int
teardown(void **state)
{
	(void)state;
#ifdef VFS_H
	(void)vfs_record_end();
#endif
	store_close(store);
	store = NULL;
	empty_files();
	if (is_postgresql())
		new_schema(schema, false);
	return rmdir(dir);
}

#define STORE_TEST(name)  TEST_WITH(name, setup, teardown)
#define DIR_TEST(name)    TEST_WITH(name, setup_dir, teardown)
#define TOPICS_TEST(name) TEST_WITH(name, setup_topics, teardown)

#include "store_sql.h"
#include "store_words.h"
#include "store_kinds.h"

/* The beginning of the names of the files about this host's processes. */
static UNUSED const char *
local_files(void)
{
	static char name[400];
	struct dirent *e;
	char *end;
	DIR *d;

	if (!is_postgresql())
		return file;
	name[0] = '\0';
	assert_non_null(d = opendir(dir));
	while (name[0] == '\0' && (e = readdir(d)) != NULL)
		if ((end = strstr(e->d_name, "-lock")) != NULL)
			snprintf(name, sizeof(name), "%s/%.*s", dir,
			    (int)(end - e->d_name), e->d_name);
	closedir(d);
	return name;
}

/* --- reservations ------------------------------------------------------- */

#define HOUR 3600000

static UNUSED struct store_reservation
reservation(const char *key)
{
	struct store_reservation r;

	memset(&r, 0, sizeof(r));
	r.identity.scope = "alice";
	r.identity.path = "/payments";
	r.identity.key = key;
	r.fingerprint_spec = "1 json";
	memset(r.fingerprint, 0xa5, sizeof(r.fingerprint));
	r.lease = 60000;
	r.retention = HOUR;
	r.on_crash = CONF_CRASH_UNKNOWN;
	return r;
}

/* Its request, which is stored for a reconciler or a worker. */
static UNUSED void
give_request(struct store_reservation *r, const void *body, size_t length)
{
	r->environment = "A=B";
	r->environment_len = 4;
	r->body = body;
	r->body_len = length;
}

/* Reserves, and says what was decided; the lease may be NULL. */
static UNUSED enum decision
try_reserve_in(struct store *s, const struct store_reservation *r,
    struct store_lease *lease)
{
	struct store_lease unused;
	enum decision d = DECIDE_GONE;
	struct record found;

	assert_ok(
	    store_reserve(s, r, lease != NULL ? lease : &unused, &d, &found));
	if (d == DECIDE_RUN)
		assert_null(found.fingerprint_spec);
	else
		assert_true(found.id > 0);
	record_free(&found);
	return d;
}

/* The same in the test's own store, without the lease. */
static UNUSED enum decision
decision_as(const struct store_reservation *r)
{
	return try_reserve_in(store, r, NULL);
}

static UNUSED struct store_lease
reserve_as(const struct store_reservation *r)
{
	struct store_lease lease;

	assert_int_equal(try_reserve_in(store, r, &lease), DECIDE_RUN);
	return lease;
}

static UNUSED struct store_lease
reserve(const char *key)
{
	struct store_reservation r = reservation(key);

	return reserve_as(&r);
}

/* Keys in progress, with a number from 0 on behind. */
static UNUSED void
reserve_many(const char *prefix, int n)
{
	for (int i = 0; i < n; i++)
		reserve(textf("%s%d", prefix, i));
}

static UNUSED enum decision
decision_for(const char *key)
{
	struct store_reservation r = reservation(key);

	return decision_as(&r);
}

/* So many keys are looked up that are not there that the store expects the next
 * one to be new: see struct store_reservation. */
static UNUSED void
expect_new(void)
{
	struct store_reservation r = reservation("nobody's");
	struct record record;

	for (int i = 0; i < 8; i++)
		assert_int_equal(
		    store_lookup(store, &r.identity, &record, NULL),
		    RC_NOTFOUND);
}

/* The same, and then this one is reserved unseen. */
static UNUSED enum decision
reserve_unseen(const char *key, struct store_lease *lease)
{
	struct store_reservation r = reservation(key);
	struct record found;
	enum decision d;

	expect_new();
	r.unseen = true;
	assert_ok(store_reserve(store, &r, lease, &d, &found));
	assert_int_equal(found.id, 0);
	assert_null(found.fingerprint_spec);
	return d;
}

/* Why it cannot be reserved. */
static UNUSED enum rc
reserve_fails(const char *key)
{
	struct store_reservation r = reservation(key);
	struct store_lease lease;
	struct record found;
	enum decision d;
	enum rc rc;

	rc = store_reserve(store, &r, &lease, &d, &found);
	assert_null(found.fingerprint_spec);
	return rc;
}

static UNUSED struct record
find(const char *key)
{
	struct store_reservation r = reservation(key);
	struct record record;

	assert_ok(store_find(store, &r.identity, &record));
	return record;
}

/* The same; it lives until the next call. */
static UNUSED const struct record *
record_of(const char *key)
{
	static struct record record;

	record_free(&record);
	record = find(key);
	return &record;
}

static UNUSED enum record_state
state_of(const char *key)
{
	struct store_reservation r = reservation(key);
	enum record_state state;
	struct record record;
	enum rc rc;

	rc = store_find(store, &r.identity, &record);
	if (rc == RC_NOTFOUND)
		return RECORD_NONE;
	assert_ok(rc);
	state = record.state;
	record_free(&record);
	return state;
}

/* The job that is due; it is not taken. */
static UNUSED struct record
next_job(void)
{
	struct record job;

	assert_ok(store_job_next(store, &job));
	return job;
}

/* Starts the job that is due. */
static UNUSED enum rc
start_next(const struct store_reservation *r, struct store_lease *lease)
{
	struct record job = next_job();
	enum rc rc = store_job_start(store, &job, r, lease);

	record_free(&job);
	return rc;
}

/* Its retention was counted from now. */
static UNUSED void
assert_retention(const char *key, int64_t retention)
{
	assert_in_range(record_of(key)->expires_at,
	    store_now(store) + retention - 60000,
	    store_now(store) + retention + 1000 + SKEW);
}

/* --- effects ------------------------------------------------------------ */

/* What a handler of that attempt gets as ONCE_TOKEN. */
static UNUSED const char *
token_of(const struct store_lease *lease)
{
	return textf("%s-%lld", lease->token, (long long)lease->id);
}

static UNUSED struct handler_api *
open_handler(void)
{
	struct handler_api *api;
	char err[256];

	if (handler_api_open(
		&api, options().database, PATIENCE, err, sizeof(err)) != RC_OK)
		fail_msg("%s", err);
	return api;
}

/* A handler of that attempt puts n bytes there; whether it may. */
static UNUSED bool
try_emit(const struct store_lease *lease, const char *topic,
    const void *payload, int n)
{
	const struct handler_api_effect effect = { topic, payload, (size_t)n };
	struct handler_api *api = open_handler();
	enum rc rc = handler_api_emit(api, token_of(lease), &effect);

	handler_api_close(api);
	return rc == RC_OK;
}

/* It stores its response: 201, and a body. */
static UNUSED void
respond(const struct store_lease *lease, const void *body, size_t length)
{
	struct handler_api *api = open_handler();

	assert_ok(handler_api_respond(
	    api, token_of(lease), 201, "", body, length, NULL, 0));
	handler_api_close(api);
}

/* --- bodies ------------------------------------------------------------- */

static UNUSED unsigned char
byte_at(size_t i)
{
	return (unsigned char)(i * 31 + i / 251);
}

/* So many of them, to be freed. */
static UNUSED unsigned char *
make_bytes(size_t length)
{
	unsigned char *bytes = malloc(length + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < length; i++)
		bytes[i] = byte_at(i);
	return bytes;
}

static UNUSED bool
are_bytes(const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (((const unsigned char *)bytes)[i] != byte_at(i))
			return false;
	return true;
}

/* Whether that key has a stored request, with such a body. */
static UNUSED bool
request_is(
    int64_t id, const char *environment, size_t environment_len, int64_t length)
{
	struct spool *body;
	struct buf text;
	enum rc rc;
	bool same;

	buf_init(&text, 65536);
	rc = store_request(store, owner_of(id), id, &text, &body);
	same = rc == RC_OK && text.len == environment_len &&
	    memcmp(text.data, environment, text.len) == 0 &&
	    (body == NULL ? 0 : (int64_t)spool_length(body)) == length &&
	    (body == NULL || are_bytes(spool_bytes(body, &rc), (size_t)length));
	buf_free(&text);
	spool_free(body);
	return same;
}

/* How an attempt may end. */
static UNUSED const enum record_state run_ends[] = { RECORD_COMPLETED,
	RECORD_FAILED_RETRYABLE, RECORD_UNKNOWN };

/* --- outcomes ----------------------------------------------------------- */

static UNUSED struct store_outcome *
outcome(enum record_state state)
{
	struct store_outcome *o = store_outcome_new(store);

	assert_non_null(o);
	o->state = state;
	if (state == RECORD_COMPLETED) {
		o->keep = true;
		o->response.status = 201;
	}
	return o;
}

/* A body of that many bytes, in a spool that the outcome owns. */
static UNUSED void
give_body(struct store_outcome *o, size_t length)
{
	unsigned char *data = make_bytes(length);
	enum rc rc;

	o->body = spool_new();
	assert_non_null(o->body);
	assert_ok(spool_write(o->body, data, length));
	free(data);
	o->response.body = spool_bytes(o->body, &rc);
	assert_ok(rc);
	o->response.body_len = length;
}

/* What store_finish() returns; frees the outcome. */
static UNUSED enum rc
finish_for(
    const struct store_lease *lease, int64_t retention, struct store_outcome *o)
{
	struct store_finished done;
	enum rc rc;

	rc = store_finish(store, lease, retention, &o, &done);
	assert_true((o == NULL) == (rc == RC_PENDING));
	store_outcome_free(o);
	return rc;
}

static UNUSED enum rc
finish(const struct store_lease *lease, struct store_outcome *o)
{
	return finish_for(lease, HOUR, o);
}

/* The same for an outcome that is found out; tries < 0: by an operator. */
static UNUSED enum rc
resolve_with(int64_t id, struct store_tries tries, struct store_outcome *o)
{
	enum rc rc;

	rc = tries.tries < 0
	    ? store_resolve_by_operator(store, id, tries.attempt, &o)
	    : store_resolve(store, id, &tries, &o);
	assert_true((o == NULL) == (rc == RC_PENDING));
	store_outcome_free(o);
	return rc;
}

static UNUSED enum rc
abandon(int64_t id, struct store_outcome *o)
{
	enum rc rc = store_abandon(store, id, &o);

	assert_true((o == NULL) == (rc == RC_PENDING));
	store_outcome_free(o);
	return rc;
}

static UNUSED void
settle_for(
    const struct store_lease *lease, enum record_state state, int64_t retention)
{
	assert_ok(finish_for(lease, retention, outcome(state)));
}

static UNUSED void
settle(const struct store_lease *lease, enum record_state state)
{
	settle_for(lease, state, HOUR);
}

/* Completed keys, with a number from 0 on behind. */
static UNUSED void
complete_many(const char *prefix, int n, int64_t retention)
{
	struct store_lease lease;

	for (int i = 0; i < n; i++) {
		lease = reserve(textf("%s%d", prefix, i));
		settle_for(&lease, RECORD_COMPLETED, retention);
	}
}

/* Completes the attempt with a body of that length. */
static UNUSED void
answer_for(const struct store_lease *lease, size_t length, int64_t retention)
{
	struct store_outcome *o = outcome(RECORD_COMPLETED);

	give_body(o, length);
	assert_ok(finish_for(lease, retention, o));
}

static UNUSED void
answer_with(const struct store_lease *lease, size_t length)
{
	answer_for(lease, length, HOUR);
}

/* A new key that ends in that state. */
static UNUSED struct store_lease
put(const char *key, enum record_state state)
{
	struct store_lease lease = reserve(key);

	settle(&lease, state);
	return lease;
}

static UNUSED struct store_lease
put_answer(const char *key, size_t length)
{
	struct store_lease lease = reserve(key);

	answer_with(&lease, length);
	return lease;
}

/* Why no answer of that key is given. */
static UNUSED enum rc
no_answer(int64_t id)
{
	struct response r;
	struct spool *body;
	enum rc rc;

	response_init(&r);
	rc = store_answer(store, owner_of(id), id, &r, &body);
	assert_null(body);
	assert_null(r.body);
	response_free(&r);
	return rc;
}

/* Whether the answer of that key is a body of byte_at() of that length. */
static UNUSED bool
answer_is(int64_t id, size_t length)
{
	struct response r;
	struct spool *body;
	bool same;

	response_init(&r);
	same = store_answer(store, owner_of(id), id, &r, &body) == RC_OK &&
	    r.status == 201 && r.body_len == length &&
	    (length == 0) == (body == NULL) && are_bytes(r.body, length);
	response_free(&r);
	spool_free(body);
	return same;
}

/* Whatever its state is. */
static UNUSED void
forget_key(int64_t id)
{
	assert_ok(store_forget(store, id, RECORD_NONE));
}

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

/* --- threads ------------------------------------------------------------- */

static UNUSED pthread_t
start_thread(void *(*act)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, act, arg), 0);
	return thread;
}

/* --- other processes ---------------------------------------------------- */

/* What a forked child does first: it dies with us, and a check that fails in
 * it ends it, where cmocka would go on with the next test. */
static UNUSED void
be_child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

static UNUSED void
kill_and_wait(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#endif
