/*
 * Findings about the key store, for an operator.
 */
#include "config.h"

#include <sys/stat.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "schema.h"
#include "store_operator.h"
#include "store_impl.h"
#include "store_row.h"

struct findings {
	struct store_finding *item;
	size_t max, n;
};

static void __attribute__((format(printf, 4, 5)))
found(struct findings *f, const char *name, bool ok, const char *fmt, ...)
{
	struct store_finding *item;
	va_list ap;

	if (f->n == f->max)
		return;
	item = &f->item[f->n++];
	item->ok = ok;
	snprintf(item->name, sizeof(item->name), "%s", name);
	va_start(ap, fmt);
	vsnprintf(item->text, sizeof(item->text), fmt, ap);
	va_end(ap);
}

/* The one number that a statement returns. */
static enum rc
doctor_number(struct db *db, enum query q, int64_t *value)
{
	enum rc rc = db_onef(db_stmt(db, q), "i", value);

	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

static void
check_integrity(struct db *db, struct findings *f)
{
	char *text = NULL;
	enum rc rc = db_onef(db_stmt(db, QUERY_INTEGRITY), "s", &text);

	if (text != NULL && strcmp(text, "ok") == 0)
		found(f, "integrity", true, "pages, rows and indexes agree");
	else
		found(f, "integrity", false, "%s",
		    text != NULL      ? text
			: rc != RC_OK ? rc_text(rc)
				      : "no answer");
	free(text);
}

static void
check_bodies(struct db *db, struct findings *f)
{
	int64_t orphans, pieces, missing;

	if (doctor_number(db, QUERY_ORPHAN_BODIES, &orphans) != RC_OK ||
	    doctor_number(db, QUERY_ORPHAN_PIECES, &pieces) != RC_OK ||
	    doctor_number(db, QUERY_MISSING_BODIES, &missing) != RC_OK)
		found(f, "bodies", false, "cannot be counted");
	else if (orphans + pieces != 0 || missing != 0)
		found(f, "bodies", false,
		    "%" PRId64 " without a key, %" PRId64
		    " keys without their body",
		    orphans + pieces, missing);
	else
		found(f, "bodies", true, "each belongs to its key");
}

/* The stored request must be erased once the outcome is known. */
static void
check_requests(struct db *db, struct findings *f)
{
	int64_t orphans, pieces, cut, missing, wrong;

	if (doctor_number(db, QUERY_ORPHAN_REQUESTS, &orphans) != RC_OK ||
	    doctor_number(db, QUERY_ORPHAN_REQUEST_PIECES, &pieces) != RC_OK ||
	    doctor_number(db, QUERY_MISSING_REQUEST_BODIES, &cut) != RC_OK ||
	    doctor_number(db, QUERY_KEPT_ERROR, &wrong) != RC_OK ||
	    doctor_number(db, QUERY_MISSING_REQUESTS, &missing) != RC_OK)
		found(f, "requests", false, "cannot be counted");
	else if (missing != 0)
		found(f, "requests", false,
		    "%" PRId64 " of accepted keys are not there", missing);
	else if (orphans != 0)
		found(f, "requests", false,
		    "%" PRId64 " kept for keys that are settled or gone",
		    orphans);
	else if (pieces + cut != 0)
		found(f, "requests", false,
		    "%" PRId64 " bodies without a request, %" PRId64
		    " requests without all of their body",
		    pieces, cut);
	else if (wrong != 0)
		found(f, "requests", false,
		    "their bytes are counted wrong, by %" PRId64, wrong);
	else
		found(f, "requests", true,
		    "none is kept for longer than it is needed");
}

static void
check_schema(struct db *db, struct findings *f)
{
	int64_t version, missing;
	char *names = NULL;

	if (db_pragma(db, "user_version", &version) != RC_OK)
		found(f, "schema", false, "cannot be read");
	else if (version != SCHEMA_VERSION)
		found(f, "schema", false,
		    "version %" PRId64 ", and this is for version %d", version,
		    SCHEMA_VERSION);
	else if (db_onef(db_stmt(db, QUERY_MISSING_PARTS), "is", &missing,
		     &names) != RC_OK)
		found(f, "schema", false, "cannot be read");
	else if (missing != 0)
		found(f, "schema", false, "version %" PRId64 ", without %s",
		    version, names != NULL ? names : "some of it");
	else
		found(f, "schema", true, "version %" PRId64 ", complete",
		    version);
	free(names);
}

static void
check_foreign(struct db *db, struct findings *f)
{
	char *names = NULL;
	int64_t n;

	if (db_onef(db_stmt(db, QUERY_FOREIGN_PARTS), "is", &n, &names) !=
	    RC_OK)
		found(f, "foreign", false, "the schema cannot be read");
	else if (n == 0)
		found(f, "foreign", true, "nothing of others is on our tables");
	else
		found(f, "foreign", false,
		    "of others, on our tables: %s; triggers do not run in "
		    "oncewrap",
		    names != NULL ? names : "something");
	free(names);
}

static void
check_rows(struct store *store, struct db *db, struct findings *f)
{
	char names[160];
	int64_t bad;
	enum rc rc;

	rc = store_row_find_bad(db, &store->seed, &bad, names, sizeof(names));
	if (rc != RC_OK)
		found(f, "rows", false, "cannot be read: %s", rc_text(rc));
	else if (bad > 0)
		found(f, "rows", false,
		    "%" PRId64 " make no sense, and are skipped: %s", bad,
		    names);
	else
		found(f, "rows", true, "all make sense");
}

static void
check_journal(struct db *db, struct findings *f)
{
	bool wal;

	if (db_is_wal(db, &wal) != RC_OK)
		found(f, "journal", false, "its mode cannot be read");
	else if (!wal)
		found(f, "journal", false,
		    "not in WAL mode, as after VACUUM INTO: oncewrap puts it "
		    "into that when it starts");
	else
		found(f, "journal", true, "in WAL mode");
}

static void
check_owners(struct store *store, struct db *db, struct findings *f)
{
	int64_t dead = 0, sum = 0, rows;
	struct db_stmt *s;
	size_t n = 1;
	enum rc rc;

	while ((rc = store_dead_owners(store, dead, &dead, 1, &n)) == RC_OK &&
	    n > 0) {
		s = db_stmt(db, QUERY_OWNER_COUNT);
		db_bindf(s, "i", dead);
		if ((rc = db_onef(s, "i", &rows)) != RC_OK)
			break;
		sum += rows;
	}
	if (rc != RC_OK)
		found(f, "leases", false,
		    "cannot tell which processes live: %s", rc_text(rc));
	else if (sum > 0)
		found(f, "leases", false,
		    "%" PRId64 " held by processes that are gone: "
		    "\"oncectl sweep\" settles them",
		    sum);
	else
		found(f, "leases", true, "all held by living processes");
}

static void
check_states(struct db *db, struct findings *f)
{
	int64_t unattended, waiting, dead;

	if (db_onef(db_stmt(db, QUERY_COUNT_OPEN), "iii", &unattended, &waiting,
		&dead) != RC_OK) {
		found(f, "unknown", false, "keys cannot be counted");
		return;
	}
	if (unattended > 0)
		found(f, "unknown", false,
		    "%" PRId64 " keys that no program reconciles: \"oncectl ls "
		    "--state unknown\" lists, \"oncectl resolve\" settles them",
		    unattended);
	else
		found(f, "unknown", true, "none without a reconciler");
	found(f, "reconcile", true, "%" PRId64 " keys wait for a next try",
	    waiting);
	if (dead > 0)
		found(f, "dead_letter", false,
		    "%" PRId64 " keys that reconciliation gave up: \"oncectl "
		    "resolve\" settles them",
		    dead);
	else
		found(f, "dead_letter", true, "none");
}

/* Effects that were given up, and the number that are on their way. */
static void
check_outbox(struct db *db, struct findings *f)
{
	struct store_count effects[STORE_EFFECT_NSTATES];
	int64_t dead;
	enum rc rc;

	rc = store_count_effects(db, QUERY_GAUGE_OUTBOX, effects);
	dead = effects[STORE_EFFECT_DEAD_LETTER].n;
	if (rc != RC_OK)
		found(f, "outbox", false, "cannot be counted");
	else if (dead > 0)
		found(f, "outbox", false,
		    "%" PRId64 " effects that were given up: \"oncectl outbox "
		    "ls --state dead_letter\" lists, \"outbox retry\" or "
		    "\"outbox drop\" settles them",
		    dead);
	else
		found(f, "outbox", true,
		    "%" PRId64 " effects to be delivered, none given up",
		    effects[STORE_EFFECT_PENDING].n);
}

/* Effects, payloads and turns must match: see store_effect.c. */
static void
check_effects(struct db *db, struct findings *f)
{
	int64_t orphans, stalled, payloads, missing;

	if (doctor_number(db, QUERY_ORPHAN_EFFECTS, &orphans) != RC_OK ||
	    doctor_number(db, QUERY_STALLED_EFFECTS, &stalled) != RC_OK ||
	    doctor_number(db, QUERY_ORPHAN_PAYLOADS, &payloads) != RC_OK ||
	    doctor_number(db, QUERY_MISSING_PAYLOADS, &missing) != RC_OK)
		found(f, "effects", false, "cannot be counted");
	else if (orphans + stalled + payloads + missing != 0)
		found(f, "effects", false,
		    "%" PRId64 " without a key, %" PRId64
		    " whose key has no turn, or two, %" PRId64
		    " without a payload, %" PRId64 " payloads too many",
		    orphans, stalled, missing, payloads);
	else
		found(f, "effects", true,
		    "each has what belongs to it, and its turn");
}

/* Effects of a topic without a section are not delivered. */
static void
check_topics(struct db *db, const struct conf *conf, struct findings *f)
{
	struct db_stmt *s = db_stmt(db, QUERY_PENDING_TOPICS);
	char names[128] = "";
	int64_t effects = 0, n;
	const char *name;
	bool configured;
	size_t len = 0;
	enum rc rc;

	while ((rc = db_step_row(s)) == RC_OK) {
		rc = db_rowf(s, "pi?", &name, &n, &configured);
		if (rc != RC_OK)
			break;
		if (name == NULL ||
		    (conf != NULL ? conf_effect_find(conf, name) != NULL
				  : configured))
			continue;
		effects += n;
		if (len < sizeof(names))
			len +=
			    (size_t)snprintf(names + len, sizeof(names) - len,
				"%s%s", len > 0 ? " " : "", name);
	}
	db_reset(s);
	if (rc != RC_NOTFOUND)
		found(f, "topics", false, "cannot be counted");
	else if (effects > 0)
		found(f, "topics", false,
		    "%" PRId64 " effects wait for an [effect] section that "
		    "there is not: %s",
		    effects, names);
	else
		found(f, "topics", true, "whatever is pending has a section");
}

static void
check_mode(struct store *store, struct findings *f)
{
	struct stat st;

	if (stat(store->file, &st) == -1)
		found(
		    f, "file", false, "%s is not there any more", store->file);
	else if ((st.st_mode & 07) != 0)
		found(f, "file", false,
		    "mode %04o: answers can be read by anyone",
		    (unsigned)st.st_mode & 07777);
	else
		found(
		    f, "file", true, "mode %04o", (unsigned)st.st_mode & 07777);
}

/* Whether other users can rename or remove the store's files: they may write
 * the folder, and its sticky bit is not set.  text gets the cure. */
static bool
folder_is_loose(const struct store *store, char *text, size_t size)
{
	const char *folder = store->guard.folder;
	struct stat st;

	if (stat(folder, &st) == -1 || (st.st_mode & 022) == 0 ||
	    (st.st_mode & S_ISVTX) != 0)
		return false;
	snprintf(text, size,
	    "mode %04o of %s lets other users rename and remove the database, "
	    "its log and the files of attempts: chmod +t",
	    (unsigned)st.st_mode & 07777, folder);
	return true;
}

static void
doctor_check_folder(struct store *store, struct findings *f)
{
	char text[256];

	if (folder_is_loose(store, text, sizeof(text)))
		found(f, "folder", false, "%s", text);
	else
		found(f, "folder", true,
		    "no other user can rename or remove files in it");
}

void
store_warn_of_folder(const struct store *store)
{
	char text[256];

	if (folder_is_loose(store, text, sizeof(text)))
		log_event(LOG_WARN, "store-folder", NULL,
		    LOG_S("database", store->file), LOG_S("message", text));
}

enum rc
store_doctor(struct store *store, const struct conf *conf,
    struct store_finding *items, size_t max, size_t *n)
{
	struct findings f = { items, max, 0 };
	struct store_reader *reader;
	enum rc rc;

	*n = 0;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	check_integrity(reader->db, &f);
	check_schema(reader->db, &f);
	check_foreign(reader->db, &f);
	check_rows(store, reader->db, &f);
	check_journal(reader->db, &f);
	check_bodies(reader->db, &f);
	check_requests(reader->db, &f);
	check_owners(store, reader->db, &f);
	check_states(reader->db, &f);
	check_outbox(reader->db, &f);
	check_effects(reader->db, &f);
	check_topics(reader->db, conf, &f);
	store_reader_give(store, reader);
	check_mode(store, &f);
	doctor_check_folder(store, &f);
	found(&f, "log", true, "%" PRId64 " bytes in the write-ahead log",
	    store_file_size(store, "-wal"));
	*n = f.n;
	return RC_OK;
}
