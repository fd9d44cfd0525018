/*
 * Makes a database, or checks that one is ours and of a version we know.  An
 * unknown version is refused, never guessed; a foreign file is only read.
 *
 * Several processes may do this at once: what is there is looked at again
 * within the transaction that makes it.
 */
#include "config.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "scope.h"
#include "migrate.h"

/* Store time begins with 1970-01-02, so that no deadline is 0. */
#define FIRST_TIME 86400000

enum content { EMPTY, OURS, OLDER, NEWER, FOREIGN };

/*
 * The file is made with its mode before SQLite opens it: the log and its index
 * take after it.  O_EXCL, for a file that is there must not be opened and
 * closed here: that would drop the locks that this process has on it.
 */
static enum rc
make_file(const struct migrate_options *o, char *err, size_t errsize)
{
	struct stat st;
	enum rc rc;
	int fd;

	if (stat(o->file, &st) == 0) {
		if (S_ISREG(st.st_mode))
			return RC_OK;
		snprintf(err, errsize, "database %s: not a file", o->file);
		return RC_IO;
	}
	if (errno == ENOENT && !o->create) {
		snprintf(
		    err, errsize, "database %s: %s", o->file, strerror(errno));
		return RC_NOTFOUND;
	}
	fd = open(o->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, o->mode);
	if (fd == -1 && errno == EEXIST)
		return RC_OK;
	if (fd == -1) {
		rc = errno == ENOSPC || errno == EDQUOT ? RC_FULL : RC_IO;
		snprintf(
		    err, errsize, "database %s: %s", o->file, strerror(errno));
		return rc;
	}
	(void)fchmod(fd, o->mode); /* whatever the umask */
	close(fd);
	FAULT(MIGRATE_FILE);
	return RC_OK;
}

/* What is in it; *version is 0 where nothing is. */
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

/* The same from outside of a transaction: of one state of the file, while
 * others may be making it. */
static enum rc
look_once(struct db *db, enum content *content, int64_t *version)
{
	enum rc rc;

	if ((rc = db_begin_read(db)) == RC_OK)
		rc = look(db, content, version);
	if (rc == RC_OK) /* else its message is still wanted */
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

/* All versions that are missing, in one transaction. */
static enum rc
make_tables(struct db *db)
{
	enum content content;
	int64_t version;
	enum rc rc;

	rc = db_begin(db);
	if (rc == RC_OK)
		rc = look(db, &content, &version);
	if (rc == RC_OK && content != EMPTY && content != OLDER) {
		db_rollback(db); /* someone else made them */
		return RC_OK;
	}
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
	return rc;
}

/*
 * A change of journal mode does not wait for other processes that try the
 * same, SQLite's busy handler or not.
 */
static enum rc
make(struct db *db, bool is_new, int64_t patience)
{
	int64_t until = clock_mono() + patience;
	enum content content;
	int64_t version;
	enum rc rc;

	for (;;) {
		rc = is_new ? db_setup_new(db) : RC_OK;
		if (rc == RC_OK)
			rc = make_tables(db);
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

static enum rc
check(struct db *db, const struct migrate_options *o, char *err, size_t errsize)
{
	enum content content;
	int64_t version;
	enum rc rc;

	rc = look_once(db, &content, &version);
	if (rc == RC_OK && (content == EMPTY || content == OLDER) &&
	    o->create) {
		rc = db_setup_writer(db, o->full);
		if (rc == RC_OK)
			rc = make(db, content == EMPTY, o->busy_timeout);
		if (rc == RC_OK)
			rc = look_once(db, &content, &version);
	}
	if (rc != RC_OK)
		return rc;
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

enum rc
migrate_open(
    struct db **out, const struct migrate_options *o, char *err, size_t errsize)
{
	struct db *db = NULL;
	enum rc rc;

	*out = NULL;
	err[0] = '\0';
	rc = make_file(o, err, errsize);
	if (rc != RC_OK)
		return rc;
	rc = db_open(&db, o->file, o->busy_timeout);
	if (rc != RC_OK)
		goto out;
	db_set_quiet(db, true);
	rc = check(db, o, err, errsize);
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
	return rc;
}
