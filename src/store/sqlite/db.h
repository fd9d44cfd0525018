/*
 * SQLite's interface.  Only the db files know sqlite3.h.
 *
 * One thread at a time uses a connection.  Statements are named by enum query,
 * prepared at their first use, and kept.  The caller states how many rows a
 * statement gives or changes by the function that it calls.  A failure is
 * logged here, once, with SQLite's message.  A lock held by another connection
 * (RC_BUSY) is not logged, because the caller may wait for it.
 */
#ifndef DB_H
#define DB_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "queries.h"
#include "rc.h"
#include "row_member.h"

struct db;
struct db_stmt;

/*
 * Opens an existing file; an empty file is an empty database.  The name may be
 * relative, but no part of it may be a symbolic link; db_file() returns its
 * absolute form.  busy_timeout (ms) is how long the connection waits for a
 * lock.  Triggers and views of the file are off.
 */
enum rc db_open(struct db **out, const char *file, int64_t busy_timeout);

/* Why the SQLite of this machine keeps no promise, whatever the database; NULL:
 * it does. */
const char *db_library_refusal(void);
void db_close(struct db *db);

/* Turns the triggers and views of the file on. */
enum rc db_use_views(struct db *db);

/* Whether the file's name no longer leads to the open file. */
bool db_has_moved(const struct db *db);

/* Whether the database is in write-ahead-log mode; and the change to that mode,
 * which fails with RC_BUSY, without waiting, while others use it. */
enum rc db_is_wal(struct db *db, bool *wal);
enum rc db_use_wal(struct db *db);

const char *db_file(const struct db *db);

/* The message of the last failure. */
const char *db_message(const struct db *db);

/* While quiet, nothing is logged: the caller reports db_message(). */
void db_set_quiet(struct db *db, bool quiet);
void db_set_busy_timeout(struct db *db, int64_t ms);

/* Settings of a connection that only reads, with a cache of that size (KiB);
 * and of one that writes.  full: commits are synced. */
enum rc db_setup_reader(struct db *db, int cache);
enum rc db_setup_writer(struct db *db, bool full);

/* Loads sql/checks.sql, so that this connection refuses what it forbids. */
enum rc db_load_checks(struct db *db);

/* For a new, empty database: page size, write-ahead log, ... */
enum rc db_setup_new(struct db *db);

/* Runs statements without parameters or rows. */
enum rc db_exec(struct db *db, const char *sql);

/* Reads, or sets, "PRAGMA name". */
enum rc db_pragma(struct db *db, const char *name, int64_t *value);
enum rc db_set_pragma(struct db *db, const char *name, int64_t value);

/* Transactions.  BEGIN IMMEDIATE waits for other writers for at most the busy
 * timeout.  A read transaction sees one state of the database throughout. */
enum rc db_begin(struct db *db);
enum rc db_begin_read(struct db *db);
enum rc db_commit(struct db *db);
void db_rollback(struct db *db); /* legal without a transaction */

/*
 * The statement, reset and without bindings.  Never NULL: an error here or in
 * db_bindf() is returned by the step.  Bound texts and blobs must live until
 * the step.
 */
struct db_stmt *db_stmt(struct db *db, enum query q);

/*
 * Binds all parameters of the statement, in their order: one letter each.  A
 * format that has more or fewer letters than the statement has parameters is a
 * mistake in the program: the step returns RC_INVALID, and a build with checks
 * aborts.  The letters are those of row_parameter().
 */
void db_bindf(struct db_stmt *s, const char *format, ...);
void db_vbindf(struct db_stmt *s, const char *format, va_list *ap);

/* The next row; or RC_NOTFOUND: there is none, and the statement is reset.
 * After RC_OK the caller resets the statement when it has read the row. */
enum rc db_step_row(struct db_stmt *s);
/* Runs the statement to its end; a row is RC_CORRUPT. */
enum rc db_step_done(struct db_stmt *s);
/* Runs the statement to its end; *changed is the number of rows changed. */
enum rc db_update(struct db_stmt *s, int *changed);
void db_reset(struct db_stmt *s);

/*
 * Reads all columns of the current row, in their order: one letter each, those
 * of row_put_next(), with its failures.  A format is checked as in db_bindf().
 * On failure the columns before that one are set, the others are not.  Pointers
 * into the row live until the next step or reset.
 */
enum rc db_rowf(struct db_stmt *s, const char *format, ...);
enum rc db_vrowf(struct db_stmt *s, const char *format, va_list *ap);

/* The same for a statement of at most one row: steps, reads and resets.
 * RC_NOTFOUND: there is no row.  It has no letter that points into the row. */
enum rc db_onef(struct db_stmt *s, const char *format, ...);

/*
 * Reads the columns with the members' names from the current row into *out.  A
 * statement without them, in that order, is a mistake as for db_rowf().
 * The letters and failures are those of row_put(); w is a number.
 */
enum rc db_members(
    struct db_stmt *s, const struct row_member *members, size_t n, void *out);

/*
 * From now on the reads of this thread, by this connection only, wait for
 * nothing, and log nothing: one that would have to wait for the disk or for
 * another process fails, with RC_IO or RC_BUSY.  So a failure means nothing
 * until the read is made again without that.
 */
void db_glance_begin(struct db *db);
void db_glance_end(struct db *db);
bool db_glances(const struct db *db);

/* How many reads of files this thread has made so; for tests. */
unsigned db_glance_reads(void);

/*
 * Syncs the database file, for checkpoints that other connections made without
 * a sync.  An earlier commit of this connection has synced the log.  Does
 * nothing where commits are not synced.
 */
enum rc db_sync_foreign_commits(struct db *db);

/*
 * Reads from the database file itself, past the log, and through the
 * connection's own descriptor.  *length is its length (bytes).  RC_NOTFOUND: it
 * is too short.
 */
enum rc db_read_file(
    struct db *db, int64_t offset, void *data, int size, int64_t *length);

/* Whether the file of the log has all frames of it: RC_LOST, it has not; RC_IO,
 * that cannot be told.  Called in a transaction that writes. */
enum rc db_log_check(struct db *db);

/* A number that the log keeps until it begins anew; 0: there is no log.  Called
 * in a transaction that writes. */
uint64_t db_log_salt(struct db *db);

/* How many frames of the log any process has moved into the file, or began to.
 * Called in a transaction that writes. */
uint32_t db_log_moved(struct db *db);

/* Whether all of the log with that salt is in the file.  A part tells nothing
 * of a page: if the rest has the page too, SQLite writes only that version. */
bool db_log_is_moved(struct db *db, uint64_t salt);

/*
 * Whether a file that SQLite has mapped was truncated.  From then on nothing
 * that was read means anything, and a COMMIT that succeeded may not have been
 * one.
 */
bool db_is_torn(void);

/* The close of the last connection leaves the log as it is. */
void db_keep_log(struct db *db);

/* The length in use (bytes) of the write-ahead log, as of this connection's
 * last commit or checkpoint. */
uint64_t db_wal_bytes(const struct db *db);

/* Free space (bytes) of the file system for this user; UINT64_MAX if the file
 * system does not say. */
uint64_t db_room(const struct db *db);

/*
 * Whether the disk has room for that many more bytes of log, and for moving the
 * log into the database: the database may grow by as much as the log holds.
 * Without that room no commit and no checkpoint would ever succeed again.
 */
bool db_log_fits(const struct db *db, uint64_t more);

/* The number of rows that this connection has changed, triggers included. */
int64_t db_changes(const struct db *db);

/* The number of this connection's commits that wrote something. */
uint64_t db_commits(const struct db *db);

/*
 * Moves the write-ahead log into the database as far as readers allow; never
 * waits.  truncate: moves all of it, and gives the file's space back; RC_BUSY
 * if another connection reads or writes.
 */
enum rc db_checkpoint(struct db *db, bool truncate);

/*
 * Copies the whole database, as it is at one moment, into an existing, empty
 * file, which the caller lets no other process open.  No part of its name may
 * be a symbolic link.  Now and then next() is called, and ends the copy with
 * another result than RC_OK.  *bytes: the length of the file, which is not
 * synced.
 *
 * It is made by SQLite's backup interface inside a read transaction of the
 * source.  So writers of any process go on, and none of their commits makes the
 * copy begin again.  VACUUM INTO would leave the write-ahead-log mode, and
 * would number the rows of a handler's own tables anew.
 *
 * While the copy is made the write-ahead log cannot be reset: it grows by all
 * that is written meanwhile.
 */
enum rc db_copy(struct db *source, const char *to, enum rc (*next)(void *arg),
    void *arg, uint64_t *bytes);

#endif
