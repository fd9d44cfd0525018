/*
 * SQLite, and the only room that knows it.
 *
 * A connection is used by one thread at a time.  Statements are named by enum
 * query, prepared when first used, and kept.  How many rows a statement gives
 * or changes is an expectation that the caller states by the function it
 * calls.  What fails is logged here, once, with SQLite's message; that a lock
 * is held by someone else (RC_BUSY) is not, for the caller may wait for it.
 */
#ifndef DB_H
#define DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queries.h"
#include "rc.h"

struct db;
struct db_stmt;

/*
 * Opens an existing file; a file that is empty is a database that is empty.
 * The name may be relative, but no part of it may be a symbolic link; db_file()
 * is its absolute form.  busy_timeout (ms) is how long it waits for a lock.
 * Triggers and views of the file are off.
 */
enum rc db_open(struct db **, const char *file, int64_t busy_timeout);
void db_close(struct db *);

/* Turns the triggers and views of the file on. */
enum rc db_use_views(struct db *);

/* Whether the open file is no longer the one of its name. */
bool db_has_moved(const struct db *);

/* Whether the database is in write-ahead-log mode; and puts it into it, which
 * fails with RC_BUSY, without waiting, while others use it. */
enum rc db_is_wal(struct db *, bool *wal);
enum rc db_use_wal(struct db *);

const char *db_file(const struct db *);

/* The message of the last failure. */
const char *db_message(const struct db *);

/* Nothing is logged while quiet: for who reports db_message() himself. */
void db_set_quiet(struct db *, bool);
void db_set_busy_timeout(struct db *, int64_t);

/* Settings of a connection that only reads, with a cache of so many KiB, or
 * that writes: full says that a commit is synced. */
enum rc db_setup_reader(struct db *, int cache);
enum rc db_setup_writer(struct db *, bool full);

/* Has this connection refuse what sql/checks.sql refuses. */
enum rc db_load_checks(struct db *);

/* For a new, empty database: page size, write-ahead log, ... */
enum rc db_setup_new(struct db *);

/* Statements without parameters or rows. */
enum rc db_exec(struct db *, const char *sql);

/* What "PRAGMA name" says, and setting it. */
enum rc db_pragma(struct db *, const char *name, int64_t *value);
enum rc db_set_pragma(struct db *, const char *name, int64_t value);

/* Transactions.  BEGIN IMMEDIATE waits for other writers at most the busy
 * timeout.  A read transaction sees one state of the database throughout. */
enum rc db_begin(struct db *);
enum rc db_begin_read(struct db *);
enum rc db_commit(struct db *);
void db_rollback(struct db *); /* also where nothing is open */

/*
 * The statement, reset and without bindings.  Never NULL: what went wrong here
 * or in a db_bind function comes out of the step.  Texts and blobs bound must
 * live until then.  NULL text binds NULL.
 */
struct db_stmt *db_stmt(struct db *, enum query);
void db_bind_int(struct db_stmt *, int, int64_t);
void db_bind_text(struct db_stmt *, int, const char *);
void db_bind_blob(struct db_stmt *, int, const void *, size_t);

/* The next row, or RC_NOTFOUND: there is none, and the statement is reset.  On
 * RC_OK the caller resets it when he is done with the row. */
enum rc db_step_row(struct db_stmt *);
/* All of it; a row is RC_CORRUPT. */
enum rc db_step_done(struct db_stmt *);
/* All of it; *changed says how many rows it changed. */
enum rc db_update(struct db_stmt *, int *changed);
void db_reset(struct db_stmt *);

/* Of the current row; pointers live until the next step or reset. */
bool db_column_null(struct db_stmt *, int);
int64_t db_column_int(struct db_stmt *, int);
/* The stored length of a value; SIZE_MAX if no value can be that long. */
size_t db_column_length(struct db_stmt *, int);
/* NULL for NULL, and for a text with a NUL in it. */
const char *db_column_text(struct db_stmt *, int);
const void *db_column_blob(struct db_stmt *, int, size_t *);
/* RC_OK and a copy (NULL for NULL), RC_CORRUPT (a NUL in it), or RC_NOMEM. */
enum rc db_column_strdup(struct db_stmt *, int, char **);

/* A stored blob in place, in a transaction that the caller holds open. */
struct db_blob;
enum rc db_blob_open(struct db *, const char *table, const char *column,
    int64_t id, bool writable, struct db_blob **);
void db_blob_close(struct db_blob *);
size_t db_blob_size(const struct db_blob *);
enum rc db_blob_read(struct db_blob *, void *, size_t, size_t offset);
enum rc db_blob_write(struct db_blob *, const void *, size_t, size_t offset);

/*
 * What others moved from the log into the database without a sync is durable
 * now; a commit before it has made the log so.  Does nothing where commits are
 * not synced.
 */
enum rc db_harden(struct db *);

/* Bytes of the write-ahead log that are in use, as of this connection's last
 * commit or checkpoint. */
uint64_t db_wal_bytes(const struct db *);

/* Bytes that its file system has left for us; UINT64_MAX if it does not say. */
uint64_t db_room(const struct db *);

/*
 * Whether the log can take that many more bytes, and still be moved into the
 * database: that may grow by as much as the log holds.  Without room for it
 * neither a commit nor a checkpoint would ever succeed again.
 */
bool db_log_fits(const struct db *, uint64_t more);

/* Commits of this connection that wrote something. */
uint64_t db_commits(const struct db *);

/*
 * Moves the write-ahead log into the database, as far as readers let it, and
 * never waits.  truncate: all of it, and gives the file's space back; RC_BUSY
 * if somebody reads or writes.
 */
enum rc db_checkpoint(struct db *, bool truncate);

#endif
