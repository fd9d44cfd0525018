/*
 * Reads of one row: a key, its response, its stored request, an answer that was
 * not accepted, an effect.  An identity is told with the number of a key: if
 * another database was copied over this one, the number alone might find the
 * row of another key.
 */
#include "config.h"

#include <limits.h>
#include <string.h>

#include "log.h"
#include "rows.h"
#include "sealed.h"
#include "store_ops.h"
#include "uuid.h"

enum rc
store_find(
    struct store *s, const struct store_identity *identity, struct record *key)
{
	return store_lookup(s, identity, key, NULL);
}

/* What is asked for, and what is found. */
struct stored {
	const struct store_identity *identity;
	int64_t id;
	struct response *response;
	struct buf *environment;
	struct spool *body;
};

static void
stored_ask(struct tx *tx, enum tx_query q, struct stored *b)
{
	const struct store_identity *i = b->identity;

	spool_free(b->body);
	b->body = NULL;
	tx_send(tx, q, "isss", b->id, i->key, i->path, i->scope);
}

/* The body that was read, or NULL. */
static struct spool *
stored_end(struct stored *b, enum rc rc)
{
	if (rc == RC_OK)
		return b->body;
	spool_free(b->body);
	return NULL;
}

/* --- the response --------------------------------------------------------- */

/* The column of ANSWER after $response. */
struct pieces {
	int64_t pieces;
};

static const struct row_member number_of_pieces[] = {
	ROW_MEMBER('i', pieces, pieces),
};

static enum rc
answer_read(struct tx *tx, struct stored *b, const struct record *key)
{
	struct pieces p;
	struct rows_head h;
	enum rc rc = tx_members(tx, rows_head, rows_nhead, &h);

	if (rc == RC_OK)
		rc = tx_members(tx, number_of_pieces, 1, &p);
	if (rc == RC_OK)
		rc = rows_head_read(&h, key, b->response);
	return rc == RC_OK
	    ? tx_body_read(tx, &h.body, p.pieces, key->body_length, &b->body)
	    : rc;
}

static enum rc
answer_run(struct tx *tx, void *arg)
{
	struct stored *b = arg;
	struct record key;
	enum rc rc;

	response_free(b->response);
	stored_ask(tx, TX_ANSWER, b);
	if ((rc = tx_result(tx)) != RC_OK || (rc = tx_next(tx)) != RC_OK)
		return rc;
	if ((rc = tx_this_record(tx, &key)) == RC_OK)
		rc = answer_read(tx, b, &key);
	if (rc == RC_CORRUPT || rc == RC_VERSION)
		log_event(LOG_ERROR, "store-error", NULL,
		    LOG_S("database", tx->database),
		    LOG_S("message", "a stored answer makes no sense"),
		    LOG_I("id", b->id));
	record_free(&key);
	return rc;
}

enum rc
store_answer(struct store *s, const struct store_identity *identity, int64_t id,
    struct response *r, struct spool **body)
{
	struct stored b = { .identity = identity, .id = id, .response = r };
	enum rc rc = store_tx(s, TX_READ, answer_run, &b);

	if (rc == RC_OK && b.body != NULL) {
		r->body = spool_bytes(b.body, &rc);
		r->body_len = (size_t)spool_length(b.body);
	}
	if (rc != RC_OK) {
		r->body = NULL;
		r->body_len = 0;
	}
	*body = stored_end(&b, rc);
	return rc;
}

/* --- the request ---------------------------------------------------------- */

static enum rc
request_run(struct tx *tx, void *arg)
{
	struct stored *b = arg;
	const void *environment;
	int64_t length, pieces;
	struct row_bytes row;
	size_t n;
	enum rc rc;

	buf_clear(b->environment);
	stored_ask(tx, TX_REQUEST_OF_KEY, b);
	rc = tx_one(
	    tx, "bbmi", &environment, &n, &row.data, &row.n, &length, &pieces);
	if (rc == RC_OK)
		rc = buf_add(b->environment, environment, n);
	return rc == RC_OK ? tx_body_read(tx, &row, pieces, length, &b->body)
			   : rc;
}

enum rc
store_request(struct store *s, const struct store_identity *identity,
    int64_t id, struct buf *environment, struct spool **body)
{
	struct stored b = {
		.identity = identity, .id = id, .environment = environment
	};
	enum rc rc = store_tx(s, TX_READ, request_run, &b);

	if (rc != RC_OK)
		buf_clear(environment);
	*body = stored_end(&b, rc);
	return rc;
}

/* --- a key ---------------------------------------------------------------- */

struct one_key {
	int64_t id;
	const char *resource; /* NULL: by the number */
	struct record *key;
	struct response *head; /* NULL: not wanted */
};

static enum rc
key_run(struct tx *tx, void *arg)
{
	const struct one_key *b = arg;
	struct rows_head h;
	enum rc rc;

	if (b->resource != NULL)
		tx_send(tx, TX_STATUS, "s", b->resource);
	else
		tx_send(tx, TX_BROWSE_ROW, "i", b->id);
	if ((rc = tx_result(tx)) != RC_OK || (rc = tx_next(tx)) != RC_OK)
		return rc;
	if ((rc = tx_this_record(tx, b->key)) == RC_CORRUPT) {
		rows_bad(tx->database, "once_key", b->key->id);
		return b->resource != NULL ? rc : RC_NOTFOUND;
	}
	if (rc != RC_OK || b->head == NULL || !b->key->replayable)
		return rc;
	if (tx_members(tx, rows_head, rows_nhead, &h) != RC_OK ||
	    rows_head_read(&h, b->key, b->head) != RC_OK) {
		response_free(b->head);
		response_init(b->head);
	}
	return RC_OK;
}

enum rc
store_browse_key(
    struct store *s, int64_t id, struct record *key, struct response *head)
{
	struct one_key b = { .id = id, .key = key, .head = head };

	memset(key, 0, sizeof(*key));
	return store_tx(s, TX_LOOK, key_run, &b);
}

enum rc
store_status(struct store *s, const char *resource, struct record *key)
{
	struct one_key b = { .resource = resource, .key = key };

	memset(key, 0, sizeof(*key));
	return store_tx(s, TX_LOOK, key_run, &b);
}

/* --- an answer that was not accepted -------------------------------------- */

struct one_output {
	int64_t id;
	struct store_output *output;
};

static enum rc
output_run(struct tx *tx, void *arg)
{
	const struct one_output *find = arg;
	struct store_output *o = find->output;
	int64_t exit_status = 0;
	const void *bytes, *errors;
	size_t n, nerrors;
	enum rc rc;

	store_output_free(o);
	tx_send(tx, TX_REFUSED, "i", find->id);
	rc = tx_one(tx, "didm?bb", &o->attempt, &exit_status, &o->signal,
	    &o->length, &o->refused, &bytes, &n, &errors, &nerrors);
	if (rc != RC_OK)
		return rc;
	rc = buf_add(&o->bytes, bytes, n);
	if (rc == RC_OK)
		rc = buf_add(&o->errors, errors, nerrors);
	o->exit_status = (int)exit_status;
	/* Any program that can write the store may have written the row. */
	if (rc == RC_LIMIT || exit_status < -1 || exit_status > INT_MAX ||
	    (uint64_t)o->length < n)
		rc = RC_CORRUPT;
	return rc;
}

void
store_output_free(struct store_output *o)
{
	buf_free(&o->bytes);
	buf_free(&o->errors);
}

enum rc
store_output(struct store *s, int64_t id, struct store_output *output)
{
	struct one_output find = { id, output };
	enum rc rc;

	memset(output, 0, sizeof(*output));
	buf_init(&output->bytes, LIMIT_REFUSED);
	buf_init(&output->errors, LIMIT_ERRORS);
	rc = store_tx(s, TX_LOOK, output_run, &find);
	if (rc != RC_OK)
		store_output_free(output);
	return rc;
}

/* --- an effect ------------------------------------------------------------ */

struct one_effect {
	int64_t id;
	struct effect *effect;
};

static enum rc
effect_run(struct tx *tx, void *arg)
{
	const struct one_effect *b = arg;
	enum rc rc;

	tx_send(tx, TX_BROWSE_EFFECT, "i", b->id);
	rc = tx_result(tx);
	return rc == RC_OK ? tx_effect(tx, b->effect) : rc;
}

enum rc
store_browse_effect(struct store *s, int64_t id, struct effect *e)
{
	struct one_effect b = { id, e };

	memset(e, 0, sizeof(*e));
	return store_tx(s, TX_LOOK, effect_run, &b);
}

/* --- References and downstream keys: see sealed.h ------------------------- */

/* Bytes that a number of a Reference has room for. */
#define NUMBER_BYTES 7

/* Below SEALED_REFERENCES. */
static uint64_t
number_of(const struct row_value *v)
{
	uint64_t number = 0;

	if (v->n == 0)
		return (uint64_t)(v->number + ROW_NUMBER_HALF);
	for (int i = 0; i < NUMBER_BYTES; i++)
		number = number << 8 | v->bytes[i];
	return number;
}

bool
store_seal(const unsigned char *secret, enum sealed_kind kind,
    const struct row_value *number, char uuid[RECORD_UUID_LEN + 1])
{
	unsigned char bytes[16];

	if (!uuid_parse(uuid, bytes) ||
	    !sealed_reference(secret, kind, number_of(number), bytes))
		return false;
	uuid_text(bytes, uuid);
	return true;
}

enum rc
store_reference(struct store *s, const struct store_identity *identity,
    char uuid[RECORD_UUID_LEN + 1])
{
	const struct row_value number = store_number(s, identity).first;

	return store_seal(store_secret(s), SEALED_REFERENCE, &number, uuid)
	    ? RC_OK
	    : RC_INVALID;
}

/* The number that a UUID of that kind tells: see store_sealed_range(). */
static enum rc
number_told(
    struct store *s, enum sealed_kind kind, const char *text, uint64_t *number)
{
	char uuid[RECORD_UUID_LEN + 1];
	unsigned char bytes[16];

	if (!uuid_copied(text, uuid) || !uuid_parse(uuid, bytes))
		return RC_INVALID;
	return sealed_reference_number(store_secret(s), kind, bytes, number)
	    ? RC_OK
	    : RC_NOTFOUND;
}

enum rc
store_sealed_range(struct store *s, enum sealed_kind kind, const char *text,
    struct row_range *range)
{
	uint64_t number;
	enum rc rc = number_told(s, kind, text, &number);

	if (rc != RC_OK)
		return rc;
	memset(range, 0, sizeof(*range));
	if (store_base(s)->file != NULL) {
		range->first.number = (int64_t)number - ROW_NUMBER_HALF;
		range->last.number = range->first.number;
		return range->first.number < ROW_NUMBER_HALF ? RC_OK
							     : RC_NOTFOUND;
	}
	range->first.n = range->last.n = sizeof(range->first.bytes);
	memset(range->last.bytes, 0xff, sizeof(range->last.bytes));
	for (int i = NUMBER_BYTES - 1; i >= 0; i--, number >>= 8)
		range->first.bytes[i] = range->last.bytes[i] =
		    (unsigned char)number;
	return RC_OK;
}

enum store_instance
store_instance_kind(struct store *s, const char *instance)
{
	uint64_t number;
	enum rc rc = number_told(s, SEALED_REFERENCE, instance, &number);

	if (rc == RC_INVALID)
		return STORE_INSTANCE_NONE;
	return rc == RC_OK ? STORE_INSTANCE_OURS : STORE_INSTANCE_FOREIGN;
}

const char *
store_instance_warning(const struct record *key, const char *instance)
{
	char uuid[UUID_LEN + 1];

	if (uuid_copied(instance, uuid) && strcmp(uuid, key->instance) == 0)
		return NULL;
	return "The request with that Reference did not begin the last attempt "
	       "of this key: it was a replay, or refused, or an earlier "
	       "attempt. The log says which.";
}
