/*
 * Creates a database, or checks that it is ours and of a known version.  An
 * unknown version is refused, never guessed; a foreign file is only read.
 *
 * Several processes may do this at once.  So the transaction that creates the
 * schema reads the version again.
 */
#include "config.h"

#include <sys/random.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "migrate_file.h"
#include "scope.h"
#include "migrate.h"

/* Store time begins with 1970-01-02, so that no deadline is 0. */
#define FIRST_TIME 86400000

enum content { EMPTY, OURS, OLDER, NEWER, FOREIGN };

/* Reads the kind of the file; *version is 0 if it is empty. */
static enum rc
look(struct db *db, enum content *content, int64_t *version)
{
	int64_t id, schema;
	enum rc rc;

	if ((rc = db_pragma(db, "application_id", &id)) != RC_OK ||
	    (rc = db_pragma(db, "user_version", version)) != RC_OK ||
	    (rc = db_pragma(db, "schema_version", &schema)) != RC_OK)
		return rc;
	if (id == MIGRATE_APPLICATION_ID)
		*content = *version > MIGRATE_VERSION ? NEWER
		    : *version == MIGRATE_VERSION     ? OURS
		    : *version >= 1                   ? OLDER
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
		rc = look(db, content, version);
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
	db_bind_blob(s, 1, secret, sizeof(secret));
	rc = db_step_done(s);
	if (rc != RC_OK)
		return rc;
	(void)clock_boot_id(boot_id);
	s = db_stmt(db, QUERY_CLOCK_NEW);
	db_bind_text(s, 1, boot_id);
	db_bind_int(s, 2, FIRST_TIME - clock_boot());
	db_bind_int(s, 3, FIRST_TIME);
	return db_step_done(s);
}

static enum rc
step(struct db *db, int version)
{
	const char *const *text;
	enum rc rc = RC_OK;
	size_t n, i;

	text = queries_step(version, &n);
	for (i = 0; i < n && rc == RC_OK; i++) {
		rc = db_exec(db, text[i]);
		FAULT(MIGRATE_STEP);
	}
	if (rc == RC_OK && version == 1)
		rc = first_rows(db);
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

/* Applies all missing versions, in one transaction. */
static enum rc
make_tables(struct db *db, bool made)
{
	enum content content;
	int64_t version;
	bool created;
	enum rc rc;

	rc = db_begin(db);
	if (rc == RC_OK)
		rc = look(db, &content, &version);
	if (rc == RC_OK && content != EMPTY && content != OLDER) {
		db_rollback(db); /* another process applied them */
		return RC_OK;
	}
	created = rc == RC_OK && content == EMPTY;
	while (rc == RC_OK && version < MIGRATE_VERSION)
		rc = step(db, (int)++version);
	if (rc == RC_OK)
		rc =
		    db_set_pragma(db, "application_id", MIGRATE_APPLICATION_ID);
	if (rc == RC_OK)
		rc = db_set_pragma(db, "user_version", MIGRATE_VERSION);
	FAULT(MIGRATE_READY);
	if (rc == RC_OK)
		rc = db_commit(db);
	FAULT(MIGRATE_DONE);
	if (rc == RC_OK && created)
		log_created(db, made);
	return rc;
}

/*
 * A change of the journal mode does not wait for other processes that try the
 * same, with or without SQLite's busy handler.
 */
static enum rc
make(struct db *db, bool is_new, bool made, int64_t patience)
{
	int64_t until = clock_mono() + patience;
	enum content content;
	int64_t version;
	enum rc rc;

	for (;;) {
		rc = is_new ? db_setup_new(db) : RC_OK;
		if (rc == RC_OK)
			rc = make_tables(db, made);
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
    struct db *db, const struct migrate_options *o, char *err, size_t errsize)
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
refuse(enum content content, const struct migrate_options *o, char *err,
    size_t errsize)
{
	switch (content) {
	case OURS:
		return RC_OK;
	case NEWER:
		snprintf(err, errsize,
		    "database %s: written by a newer release", o->file);
		return RC_VERSION;
	case OLDER:
		snprintf(err, errsize,
		    "database %s: written by an older release; oncewrap "
		    "upgrades it when it starts",
		    o->file);
		return RC_VERSION;
	case EMPTY:
		snprintf(err, errsize, "database %s: no key store, but empty",
		    o->file);
		return RC_CORRUPT;
	case FOREIGN:
		break;
	}
	snprintf(
	    err, errsize, "database %s: belongs to another program", o->file);
	return RC_CORRUPT;
}

/* made: this process has just created the file. */
static enum rc
check(struct db *db, const struct migrate_options *o, bool made, char *err,
    size_t errsize)
{
	enum content content;
	int64_t version;
	enum rc rc;

	rc = look_once(db, &content, &version);
	if (rc == RC_OK && (content == EMPTY || content == OLDER) &&
	    o->create) {
		rc = db_setup_writer(db, o->full);
		if (rc == RC_OK)
			rc = make(db, content == EMPTY, made, o->busy_timeout);
		if (rc == RC_OK)
			rc = look_once(db, &content, &version);
	}
	if (rc == RC_OK)
		rc = refuse(content, o, err, errsize);
	if (rc == RC_OK && o->create)
		rc = put_into_wal(db, o, err, errsize);
	return rc;
}

/* Opens the file in its folder, after checking that it may be opened. */
static enum rc
open_file(struct db **db, const struct migrate_options *o, const char *file,
    char *err, size_t errsize)
{
	enum rc rc;

	if ((rc = migrate_file_check(file, o->create, err, errsize)) != RC_OK ||
	    (rc = migrate_file_check_log(file, err, errsize)) != RC_OK)
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
	rc = migrate_file_check(file, o->create, err, errsize);
	return rc == RC_OK && o->views ? db_use_views(*db) : rc;
}

enum rc
migrate_open(
    struct db **out, const struct migrate_options *o, char *err, size_t errsize)
{
	struct db *db = NULL;
	bool made;
	char *file;
	enum rc rc;

	*out = NULL;
	err[0] = '\0';
	file = migrate_file_resolve(o->file, err, errsize);
	if (file == NULL)
		return RC_IO;
	rc = migrate_file_make(file, o->mode, o->create, &made, err, errsize);
	if (rc == RC_OK)
		rc = open_file(&db, o, file, err, errsize);
	if (rc != RC_OK)
		goto out;
	db_set_quiet(db, true);
	rc = check(db, o, made, err, errsize);
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
	if (rc != RC_OK && err[0] == '\0')
		snprintf(err, errsize, "database %s: %s", o->file,
		    db != NULL ? db_message(db) : rc_text(rc));
	if (db != NULL)
		db_rollback(db);
	db_close(db);
	free(file);
	return rc;
}
