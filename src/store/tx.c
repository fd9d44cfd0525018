/*
 * See tx.h.
 */
#include "config.h"

#include <string.h>

#include "rows.h"
#include "spool.h"
#include "tx.h"

void
tx_send(struct tx *tx, enum tx_query q, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	tx->ops->send(tx, q, format, &ap);
	va_end(ap);
}

enum rc
tx_result(struct tx *tx)
{
	return tx->ops->result(tx);
}

enum rc
tx_next(struct tx *tx)
{
	return tx->ops->next(tx);
}

static enum rc
row_after(struct tx *tx, const char *format, va_list *ap)
{
	enum rc rc = tx->ops->next(tx);

	return rc == RC_OK ? tx->ops->row(tx, format, ap) : rc;
}

enum rc
tx_row(struct tx *tx, const char *format, ...)
{
	va_list ap;
	enum rc rc;

	va_start(ap, format);
	rc = row_after(tx, format, &ap);
	va_end(ap);
	return rc;
}

enum rc
tx_one(struct tx *tx, const char *format, ...)
{
	va_list ap;
	enum rc rc = tx_result(tx);

	if (rc != RC_OK)
		return rc;
	va_start(ap, format);
	rc = row_after(tx, format, &ap);
	va_end(ap);
	return rc;
}

enum rc
tx_members(struct tx *tx, const struct row_member *members, size_t n, void *out)
{
	return tx->ops->members(tx, members, n, out);
}

enum rc
tx_changed(struct tx *tx, int *n)
{
	return tx->ops->changed(tx, n);
}

enum rc
tx_change_one(struct tx *tx, enum rc lost)
{
	int changed;
	enum rc rc = tx_changed(tx, &changed);

	if (rc != RC_OK || changed == 1)
		return rc;
	return changed == 0 ? lost : RC_CORRUPT;
}

enum rc
tx_must_change(struct tx *tx)
{
	return tx->ops->must_change(tx);
}

/* --- keys and effects ----------------------------------------------------- */

enum rc
tx_this_record(struct tx *tx, struct record *r)
{
	memset(r, 0, sizeof(*r));
	return rows_record_end(
	    r, true, tx_members(tx, rows_record, rows_nrecord, r));
}

enum rc
tx_this_effect(struct tx *tx, struct effect *e)
{
	memset(e, 0, sizeof(*e));
	return rows_effect_end(e, tx_members(tx, rows_effect, rows_neffect, e));
}

enum rc
tx_record(struct tx *tx, struct record *r)
{
	enum rc rc;

	while ((rc = tx_next(tx)) == RC_OK &&
	    (rc = tx_this_record(tx, r)) == RC_CORRUPT)
		rows_bad(tx->database, "once_key", r->id);
	return rc;
}

enum rc
tx_effect(struct tx *tx, struct effect *e)
{
	enum rc rc;

	while ((rc = tx_next(tx)) == RC_OK &&
	    (rc = tx_this_effect(tx, e)) == RC_CORRUPT)
		rows_bad(tx->database, "once_effect", e->id);
	return rc;
}

/* --- large bodies --------------------------------------------------------- */

static enum rc
read_pieces(struct tx *tx, int64_t number, int64_t left, struct spool *body)
{
	const void *data;
	bool more = true;
	enum rc rc = RC_OK;
	size_t n;

	for (int64_t piece = 1; rc == RC_OK && more; piece++) {
		tx_send(tx, TX_PIECE, "ii", number, piece);
		rc = tx_one(tx, "b?", &data, &n, &more);
		if (rc == RC_OK && n > (uint64_t)left)
			rc = RC_CORRUPT;
		if (rc == RC_OK)
			rc = spool_write(body, data, n);
		if (rc == RC_OK)
			left -= (int64_t)n;
	}
	return rc == RC_NOTFOUND || (rc == RC_OK && left != 0) ? RC_CORRUPT
							       : rc;
}

enum rc
tx_body_read(struct tx *tx, const struct row_bytes *row, int64_t number,
    int64_t length, struct spool **body)
{
	*body = NULL;
	if (length == 0)
		return RC_OK;
	if ((*body = spool_new()) == NULL)
		return RC_NOMEM;
	if (row->n == 0)
		return read_pieces(tx, number, length, *body);
	return row->n == (uint64_t)length
	    ? spool_write(*body, row->data, row->n)
	    : RC_CORRUPT;
}
