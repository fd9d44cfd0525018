/*
 * Reads of one row: a key, an answer that was not accepted, an effect.
 */
#include "config.h"

#include <limits.h>
#include <string.h>

#include "kept.h"
#include "limit.h"
#include "rows.h"
#include "store_operator.h"
#include "store_ops.h"

/* --- a key ---------------------------------------------------------------- */

struct one_key {
	int64_t id;
	struct record *key;
	struct response *head; /* NULL: not wanted */
};

static enum rc
key_run(struct tx *tx, void *arg)
{
	const struct one_key *b = arg;
	struct kept_head h;
	enum rc rc;

	tx_send(tx, TX_BROWSE_ROW, "i", b->id);
	if ((rc = tx_result(tx)) != RC_OK ||
	    (rc = tx_record(tx, b->key)) != RC_OK)
		return rc;
	if (b->head == NULL || !b->key->kept)
		return RC_OK;
	if (tx_members(tx, kept_head, kept_nhead, &h) != RC_OK ||
	    kept_head_read(&h, b->key, b->head) != RC_OK) {
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
	return store_tx_look(s, key_run, &b);
}

struct one_resource {
	const char *resource;
	struct record *key;
};

static enum rc
status_run(struct tx *tx, void *arg)
{
	const struct one_resource *b = arg;
	enum rc rc;

	tx_send(tx, TX_STATUS, "s", b->resource);
	if ((rc = tx_result(tx)) != RC_OK || (rc = tx_next(tx)) != RC_OK)
		return rc;
	if ((rc = tx_this_record(tx, b->key)) == RC_CORRUPT)
		rows_bad(tx->database, "once_key", b->key->id);
	return rc;
}

enum rc
store_status(struct store *s, const char *resource, struct record *key)
{
	struct one_resource b = { resource, key };

	memset(key, 0, sizeof(*key));
	return store_tx_look(s, status_run, &b);
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
	rc = store_tx_look(s, output_run, &find);
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
	return store_tx_look(s, effect_run, &b);
}
