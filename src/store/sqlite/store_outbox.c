/*
 * The key store's outbox: effects that are due, the tries that deliver them,
 * and operators' reads and changes.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "log.h"
#include "store_impl.h"
#include "store_row.h"
#include "store_outbox.h"

/* --- trying ------------------------------------------------------------- */

enum rc
sqlite_effect_next(
    struct store *store, const char *topic, struct effect *e, int64_t *at)
{
	struct store_reader *reader;
	enum rc rc;

	memset(e, 0, sizeof(*e));
	rc = store_reader_query(store, QUERY_EFFECT_NEXT, &reader);
	if (rc != RC_OK)
		return rc;
	db_bindf(reader->s, "s", topic);
	rc = store_row_next_effect(reader->db, reader->s, e);
	store_reader_give(store, reader);
	*at = e->next_at;
	return rc;
}

/* The caller holds a read transaction open. */
static enum rc
read_payload(struct db *db, const struct effect *e, struct spool **payload)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_PAYLOAD);
	bool inlined, apart;
	const void *bytes;
	int64_t length;
	size_t n;
	enum rc rc;

	db_bindf(s, "is", e->id, e->effect_key);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	rc = db_rowf(s, "?b?m", &inlined, &bytes, &n, &apart, &length);
	if (rc == RC_OK && inlined == apart)
		rc = RC_CORRUPT;
	if (rc == RC_OK && (apart || n > 0) && (*payload = spool_new()) == NULL)
		rc = RC_NOMEM;
	if (rc == RC_OK && apart)
		rc = store_read_blob(
		    db, "once_payload", e->id, (size_t)length, *payload);
	else if (rc == RC_OK && n > 0)
		rc = spool_write(*payload, bytes, n);
	db_reset(s);
	return rc;
}

enum rc
sqlite_effect_payload(
    struct store *store, const struct effect *e, struct spool **payload)
{
	struct store_reader *reader;
	enum rc rc;

	*payload = NULL;
	rc = store_reader_begin(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = read_payload(reader->db, e, payload);
	store_reader_give(store, reader);
	if (rc != RC_OK) {
		spool_free(*payload);
		*payload = NULL;
	}
	return rc;
}
