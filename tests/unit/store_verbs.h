/*
 * What callers do with keys: they reserve, finish, answer, resolve and forget.
 *
 * Included by store_fixture.h only.
 */
#ifndef STORE_VERBS_H
#define STORE_VERBS_H

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
	else if (d == DECIDE_CROWDED)
		assert_true(
		    found.id == 0 || found.state == RECORD_FAILED_RETRYABLE);
	else if (d != DECIDE_OPEN && d != DECIDE_NO_ROOM)
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

/* What a handler says; *why: why it may not. */
static UNUSED enum rc
handler_says(const struct handler_api_write *w, char why[256])
{
	return handler_api_say(options().database, PATIENCE, w, why, 256);
}

/* A handler of that attempt puts n bytes there; whether it may. */
static UNUSED bool
try_emit(const struct store_lease *lease, const char *topic,
    const void *payload, int n)
{
	const struct handler_api_effect effect = { topic, payload, (size_t)n };
	const struct handler_api_write w = {
		.token = token_of(lease),
		.effects = &effect,
		.neffects = 1,
	};
	char why[256];

	return handler_says(&w, why) == RC_OK;
}

/* It stores its response: 201, and a body. */
static UNUSED void
respond(const struct store_lease *lease, const void *body, size_t length)
{
	const struct handler_api_write w = {
		.token = token_of(lease),
		.responds = true,
		.status = 201,
		.headers = "",
		.body = body,
		.len = length,
	};
	char why[256];

	assert_ok(handler_says(&w, why));
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

#endif
