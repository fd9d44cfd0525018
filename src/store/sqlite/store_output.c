/*
 * Answers that were not accepted, for operators.
 */
#include "config.h"

#include <limits.h>

#include "limit.h"
#include "store_impl.h"
#include "store_operator.h"

/* Any program that can write the file may have written the row. */
static bool
output_is_sound(const struct store_output *o, int64_t exit_status)
{
	return exit_status >= -1 && exit_status <= INT_MAX &&
	    (uint64_t)o->length >= o->bytes.len;
}

static enum rc
output_read_output(struct db_stmt *s, struct store_output *o)
{
	int64_t exit_status;
	const void *bytes;
	size_t n;
	enum rc rc;

	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	rc = db_rowf(s, "didmb", &o->attempt, &exit_status, &o->signal,
	    &o->length, &bytes, &n);
	if (rc == RC_OK)
		rc = buf_add(&o->bytes, bytes, n);
	if (rc == RC_LIMIT || (rc == RC_OK && !output_is_sound(o, exit_status)))
		rc = RC_CORRUPT;
	if (rc == RC_OK)
		o->exit_status = (int)exit_status;
	return rc;
}

enum rc
sqlite_output(struct store *store, int64_t id, struct store_output *o)
{
	struct store_reader *reader;
	enum rc rc;

	buf_init(&o->bytes, LIMIT_REFUSED);
	rc = store_reader_query(store, QUERY_REFUSED, &reader);
	if (rc != RC_OK)
		return rc;
	db_bindf(reader->s, "i", id);
	rc = output_read_output(reader->s, o);
	store_reader_give(store, reader);
	if (rc != RC_OK)
		buf_free(&o->bytes);
	return rc;
}
