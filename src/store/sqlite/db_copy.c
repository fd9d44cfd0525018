/*
 * See db_copy.h.
 */
#include "config.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "db_impl.h"
#include "db_copy.h"

struct db_copy {
	struct db *source;
	sqlite3 *to;
	sqlite3_backup *backup;
	uint64_t pages;
	bool failed; /* and logged */
};

/* A lost copy is made anew: it needs no journal and no sync before its end. */
#define COPY_SETTINGS "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"

static enum rc
open_copy(struct db_copy *c, const char *to)
{
	int code;

	code = sqlite3_open_v2(to, &c->to,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
	    NULL);
	if (c->to == NULL)
		return RC_NOMEM;
	if (code == SQLITE_OK)
		code = sqlite3_exec(c->to, COPY_SETTINGS, NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return db_fail(c->source, code, "open the copy");
	c->backup =
	    sqlite3_backup_init(c->to, "main", c->source->handle, "main");
	if (c->backup == NULL)
		return db_fail(c->source, sqlite3_errcode(c->to), "backup");
	return RC_OK;
}

enum rc
db_copy_begin(struct db_copy **out, struct db *source, const char *to)
{
	struct db_copy *c;
	int64_t version;
	enum rc rc;

	*out = NULL;
	if ((c = calloc(1, sizeof(*c))) == NULL)
		return RC_NOMEM;
	c->source = source;
	/* The first read fixes what the transaction sees. */
	if ((rc = db_begin_read(source)) == RC_OK &&
	    (rc = db_pragma(source, "schema_version", &version)) == RC_OK)
		rc = open_copy(c, to);
	if (rc != RC_OK) {
		(void)db_copy_end(c, NULL);
		return rc;
	}
	*out = c;
	return RC_OK;
}

enum rc
db_copy_step(struct db_copy *c, int pages, bool *done)
{
	int code = sqlite3_backup_step(c->backup, pages);

	c->pages = (uint64_t)sqlite3_backup_pagecount(c->backup);
	*done = code == SQLITE_DONE;
	if (code == SQLITE_OK || code == SQLITE_DONE)
		return RC_OK;
	c->failed = true;
	return db_fail(c->source, code, "copy");
}

enum rc
db_copy_end(struct db_copy *c, uint64_t *bytes)
{
	int64_t page_size = 0;
	enum rc rc = RC_OK;
	int code;

	if (c == NULL)
		return RC_OK;
	code = sqlite3_backup_finish(c->backup);
	if (code == SQLITE_OK && sqlite3_close(c->to) != SQLITE_OK)
		code = SQLITE_IOERR_CLOSE;
	else if (code != SQLITE_OK)
		(void)sqlite3_close(c->to);
	if (code != SQLITE_OK && !c->failed)
		rc = db_fail(c->source, code, "close the copy");
	if (rc == RC_OK && bytes != NULL)
		rc = db_pragma(c->source, "page_size", &page_size);
	if (bytes != NULL)
		*bytes = c->pages * (uint64_t)page_size;
	db_rollback(c->source);
	free(c);
	return rc;
}
