/*
 * Creates a database, or checks that it is ours and of a known version.  An
 * unknown version is refused; a foreign file is only read.
 *
 * Several processes may do this at once.  So the transaction that creates the
 * schema reads the version again.
 */
#include "config.h"

#include <sys/random.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "dbfile.h"
#include "scope.h"
#include "schema.h"

/* Store time begins with 1970-01-02, so that no deadline is 0. */
#define FIRST_TIME 86400000

enum content { EMPTY, OURS, OLDER, NEWER, FOREIGN };

/* Reads the kind of the file; *version is 0 if it is empty. */
static enum rc
schema_look(struct db *db, enum content *content, int64_t *version)
{
	int64_t id, schema;
	enum rc rc;

	if ((rc = db_pragma(db, "application_id", &id)) != RC_OK ||
	    (rc = db_pragma(db, "user_version", version)) != RC_OK ||
	    (rc = db_pragma(db, "schema_version", &schema)) != RC_OK)
		return rc;
	if (id == SCHEMA_APPLICATION_ID)
		*content = *version > SCHEMA_VERSION ? NEWER
		    : *version == SCHEMA_VERSION     ? OURS
		    : *version >= 1                  ? OLDER
						     : FOREIGN;
	else if (id == 0 && *version == 0 && schema == 0)
		*content = EMPTY;
	else
		*content = FOREIGN;
	return RC_OK;
}

/* The same outside of a transaction.  It reads one state of the file, though
 * other processes may be creating it. */
static enum rc
look_once(struct db *db, enum content *content, int64_t *version)
{
	enum rc rc;

	if ((rc = db_begin_read(db)) == RC_OK)
		rc = schema_look(db, content, version);
	if (rc == RC_OK) /* otherwise the caller needs its message */
		db_rollback(db);
	return rc;
}

static enum rc
first_rows(struct db *db)
{
	unsigned char secret[SCOPE_SECRET_LEN];
	char boot_id[CLOCK_BOOT_ID_LEN + 1];
	struct db_stmt *s;
	enum rc rc;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return RC_IO;
	s = db_stmt(db, QUERY_META_NEW);
	db_bindf(s, "b", secret, sizeof(secret));
	rc = db_step_done(s);
	if (rc == RC_OK)
		rc = db_step_done(db_stmt(db, QUERY_NO_FINGERPRINT));
	if (rc != RC_OK)
		return rc;
	(void)clock_boot_id(boot_id);
	s = db_stmt(db, QUERY_CLOCK_NEW);
	db_bindf(
	    s, "sii", boot_id, FIRST_TIME - clock_boot(), (int64_t)FIRST_TIME);
	return db_step_done(s);
}

/* Runs the statements of schema.sql. */
static enum rc
make_tables(struct db *db)
{
	const char *const *text;
	enum rc rc = RC_OK;
	size_t n, i;

	text = queries_schema(&n);
	for (i = 0; i < n && rc == RC_OK; i++) {
		rc = db_exec(db, text[i]);
		FAULT(SCHEMA_STEP);
	}
	return rc;
}

/* After a failed restore, or one to another place, the operator must learn that
 * all keys are new. */
static void
log_created(const struct db *db, bool made)
{
	log_event(LOG_WARN, "store-created", NULL,
	    LOG_S("database", db_file(db)),
	    LOG_S("message",
		made ? "there was no such file; all keys are new"
		     : "the file was empty; all keys are new"));
}

/* Makes the schema and the first rows, in one transaction. */
static enum rc
make_schema(struct db *db, bool made)
{
	enum content content;
	int64_t version;
	enum rc rc;

	rc = db_begin(db);
	if (rc == RC_OK)
		rc = schema_look(db, &content, &version);
	if (rc == RC_OK && content != EMPTY) {
		db_rollback(db); /* another process has made it */
		return RC_OK;
	}
	if (rc == RC_OK)
		rc = make_tables(db);
	if (rc == RC_OK)
		rc = first_rows(db);
	if (rc == RC_OK)
		rc = db_set_pragma(db, "application_id", SCHEMA_APPLICATION_ID);
	if (rc == RC_OK)
		rc = db_set_pragma(db, "user_version", SCHEMA_VERSION);
	FAULT(SCHEMA_READY);
	if (rc == RC_OK)
		rc = db_commit(db);
	FAULT(SCHEMA_DONE);
	if (rc == RC_OK)
		log_created(db, made);
	return rc;
}

/*
 * A change of the journal mode does not wait for other processes that try the
 * same, with or without SQLite's busy handler.
 */
static enum rc
schema_make(struct db *db, bool made, int64_t patience)
{
	int64_t until = clock_mono() + patience;
	enum content content;
	int64_t version;
	enum rc rc;

	for (;;) {
		rc = db_setup_new(db);
		if (rc == RC_OK)
			rc = make_schema(db, made);
		if (rc != RC_BUSY || clock_mono() >= until)
			return rc;
		db_rollback(db);
		usleep(5000);
		if (look_once(db, &content, &version) == RC_OK &&
		    content == OURS)
			return RC_OK;
		db_rollback(db);
	}
}

/* A copy made by VACUUM INTO is not in WAL mode, and all guarantees about
 * commits, readers and max_wal need that mode. */
static enum rc
put_into_wal(
    struct db *db, const struct schema_options *o, char *err, size_t errsize)
{
	int64_t until = clock_mono() + o->busy_timeout;
	enum rc rc;
	bool wal;

	rc = db_is_wal(db, &wal);
	if (rc != RC_OK || wal)
		return rc;
	while ((rc = db_use_wal(db)) == RC_BUSY && clock_mono() < until)
		usleep(5000);
	if (rc == RC_OK)
		log_event(LOG_WARN, "store-journal", NULL,
		    LOG_S("database", db_file(db)),
		    LOG_S("message",
			"it was not in WAL mode, and is put into it"));
	else
		snprintf(err, errsize,
		    "database %s: is not in WAL mode, and cannot be put into "
		    "it%s",
		    o->file,
		    rc == RC_BUSY ? " while another process uses it"
				  : " on this file system");
	return rc;
}

static enum rc
schema_refuse(enum content content, int64_t version,
    const struct schema_options *o, char *err, size_t errsize)
{
	switch (content) {
	case OURS:
		return RC_OK;
	case NEWER:
	case OLDER:
		snprintf(err, errsize,
		    "database %s: schema version %" PRId64 " is of %s release, "
		    "and this one has version %d: run the release that wrote "
		    "it, or name another file",
		    o->file, version, content == NEWER ? "a newer" : "an older",
		    SCHEMA_VERSION);
		return RC_VERSION;
	case EMPTY:
		snprintf(err, errsize,
		    "database %s: an empty file, not a key store; oncewrap "
		    "makes it one when it starts",
		    o->file);
		return RC_CORRUPT;
	case FOREIGN:
		break;
	}
	snprintf(err, errsize,
	    "database %s: belongs to another program; name another file",
	    o->file);
	return RC_CORRUPT;
}

/* Fails before anything is changed in a file that only claims to be ours. */
static enum rc
has_tables(struct db *db)
{
	return db_onef(db_stmt(db, QUERY_META_BASE), "--");
}

/* made: this process has just created the file. */
static enum rc
schema_check(struct db *db, const struct schema_options *o, bool made,
    char *err, size_t errsize)
{
	enum content content;
	int64_t version;
	enum rc rc;

	rc = look_once(db, &content, &version);
	if (rc == RC_OK && content == EMPTY && o->create) {
		rc = db_setup_writer(db, o->full);
		if (rc == RC_OK)
			rc = schema_make(db, made, o->busy_timeout);
		if (rc == RC_OK)
			rc = look_once(db, &content, &version);
	}
	if (rc == RC_OK)
		rc = schema_refuse(content, version, o, err, errsize);
	if (rc == RC_OK)
		rc = has_tables(db);
	if (rc == RC_OK && o->create)
		rc = put_into_wal(db, o, err, errsize);
	return rc;
}

/* Opens the file in its folder, after checking that it may be opened. */
static enum rc
schema_open_file(struct db **db, const struct schema_options *o,
    const char *file, char *err, size_t errsize)
{
	const enum store_files_use use = o->create ? STORE_FILES_DAEMON
	    : o->views                             ? STORE_FILES_WRITE
						   : STORE_FILES_READ;
	enum rc rc;

	if ((rc = dbfile_check(file, o->create, err, errsize)) != RC_OK ||
	    (rc = dbfile_check_use(file, use, err, errsize)) != RC_OK ||
	    (rc = dbfile_check_log(file, err, errsize)) != RC_OK)
		return rc;
	if ((rc = db_open(db, file, o->busy_timeout)) != RC_OK)
		return rc;
	/* The name must lead to the opened file, which must still pass the
	 * checks. */
	if (db_has_moved(*db)) {
		snprintf(err, errsize,
		    "database %s: was replaced while it was opened", o->file);
		return RC_REPLACED;
	}
	rc = dbfile_check(file, o->create, err, errsize);
	return rc == RC_OK && o->views ? db_use_views(*db) : rc;
}

enum rc
schema_open(
    struct db **out, const struct schema_options *o, char *err, size_t errsize)
{
	const char *why = db_library_refusal();
	struct db *db = NULL;
	bool made;
	char *file;
	enum rc rc;

	*out = NULL;
	err[0] = '\0';
	if (why != NULL) {
		snprintf(err, errsize, "database %s: %s", o->file, why);
		return RC_IO;
	}
	file = dbfile_resolve(o->file, err, errsize);
	if (file == NULL)
		return RC_IO;
	rc = dbfile_make(file, o->mode, o->create, &made, err, errsize);
	if (rc == RC_OK)
		rc = schema_open_file(&db, o, file, err, errsize);
	if (rc != RC_OK)
		goto out;
	db_set_quiet(db, true);
	rc = schema_check(db, o, made, err, errsize);
	if (rc == RC_OK)
		rc = db_setup_writer(db, o->full);
#ifdef RECORD_CHECKS
	if (rc == RC_OK)
		rc = db_load_checks(db);
#endif
	if (rc != RC_OK)
		goto out;
	db_set_quiet(db, false);
	*out = db;
	db = NULL;
out:
	/* To read it may need a new log, which only a writer may make. */
	if (rc == RC_READONLY && err[0] == '\0')
		(void)dbfile_check_use(file, STORE_FILES_WRITE, err, errsize);
	if (rc != RC_OK && err[0] == '\0')
		snprintf(err, errsize, "database %s: %s", o->file,
		    db != NULL ? db_message(db) : rc_text(rc));
	if (db != NULL)
		db_rollback(db);
	db_close(db);
	free(file);
	return rc;
}
