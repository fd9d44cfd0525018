/*
 * The database file, past the log: see store_guard.h.
 *
 * While the log has newer pages than a file that was copied over it, a
 * transaction sees those, and older ones in place of all pages that are not in
 * the log.  So the file has a seal: a number behind the secret, in the one row
 * of once_meta.  It grows in the last transaction before the log is moved into
 * the file.  The file's seal never goes back, and what was not moved yet is in
 * the log.  A copy with the same seal has the same pages, or newer ones, which
 * are in the log too.  Handlers and other programs move the log without a new
 * seal: so the next transaction after such a move sets one.
 *
 * A copy that was made through SQLite (.backup) has the log's seal, and a later
 * move without a new seal gives the file the same one.  So a seal that is the
 * last one before a move is even, and the others are odd.  Where the file got
 * an odd one, the next transaction sets an even one and moves the log again.
 * A copy by oncectl backup has no complement: see store_guard_copied().
 *
 * The log's index tells what any process has moved.  Once all of the log was
 * moved, the file must have the last seal.
 *
 * A third number, the base, says which seal the file had when the log began
 * anew: by then SQLite had synced the file.  So after a start, too, a file with
 * a lower seal is known not to be the one that the log belongs to.  The seal
 * grows then as well, because a handler may have moved the log.
 */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_guard.h"

/* Numbers of 8 bytes, the highest byte first: the seal and its complement, by
 * which it is known in a page; and the base. */
#define SEAL_LEN 16
#define BASE_LEN 24

/* How often, and after which pause (us), a page is read again: it may be
 * written meanwhile. */
#define LOOKS 20
#define PAUSE 1000

static uint64_t
number_get(const unsigned char *bytes)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | bytes[i];
	return n;
}

static void
number_put(unsigned char *bytes, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(n >> (56 - 8 * i));
}

/* The seal at that place, or 0.  *copied: it is that of a copy. */
static uint64_t
get_seal(const unsigned char *bytes, bool *copied)
{
	const uint64_t n = number_get(bytes), check = number_get(bytes + 8);

	*copied = check == n;
	return check == ~n || *copied ? n : 0;
}

void
store_guard_read_seal(
    struct store_guard *g, const unsigned char *bytes, size_t n)
{
	bool copied = false;

	g->seal = n >= SEAL_LEN ? get_seal(bytes, &copied) : 0;
	g->base = n == BASE_LEN && g->seal != 0 && !copied
	    ? number_get(bytes + SEAL_LEN)
	    : 0;
}

enum rc
store_guard_seal(struct store_guard *g, struct db *db, bool moves)
{
	struct db_stmt *s = db_stmt(db, QUERY_META_SEAL);
	unsigned char bytes[BASE_LEN];

	g->seal += (g->seal & 1) == moves ? 1 : 2;
	number_put(bytes, g->seal);
	number_put(bytes + 8, ~g->seal);
	number_put(bytes + SEAL_LEN, g->base);
	db_bindf(s, "b", bytes, sizeof(bytes));
	return db_step_done(s);
}

enum rc
store_guard_base(struct store_guard *g, struct db *db, bool *move)
{
	enum rc rc;

	g->new_log = db_log_salt(db);
	g->new_moved = db_log_moved(db);
	if (g->new_log == g->log && g->new_moved == g->moved)
		return RC_OK;
	if (g->new_log != g->log && g->below > g->base)
		g->base = g->below;
	if ((rc = store_guard_file(g, db)) != RC_OK)
		return rc;
	*move |= (atomic_load(&g->sealed) & 1) != 0;
	return store_guard_seal(g, db, *move);
}

/* The next place for a seal on the page, from p on; NULL: there is none. */
static unsigned char *
next_seal(const struct store_guard *g, unsigned char *p, unsigned char *end)
{
	const size_t len = sizeof(g->secret);

	p = memmem(p, (size_t)(end - p), g->secret, len);
	return p != NULL && end - p >= (ptrdiff_t)len + SEAL_LEN ? p + len
								 : NULL;
}

/* The highest seal on the page: a row that was changed may have left its former
 * bytes there. */
static uint64_t
seal_of_page(const struct store_guard *g, unsigned char *page, size_t size)
{
	unsigned char *p = page;
	uint64_t seal, highest = 0;
	bool copied;

	while ((p = next_seal(g, p, page + size)) != NULL) {
		seal = get_seal(p, &copied);
		if (seal > highest && !copied)
			highest = seal;
	}
	return highest;
}

enum rc
store_guard_copied(const struct store_guard *g, int fd)
{
	const size_t size = (size_t)g->page_size;
	const off_t place = (off_t)((g->page - 1) * g->page_size);
	unsigned char *page = malloc(size), *p = page;
	enum rc rc = RC_OK;

	if (page == NULL)
		return RC_NOMEM;
	if (pread(fd, page, size, place) != (ssize_t)size)
		rc = RC_IO;
	while (rc == RC_OK && (p = next_seal(g, p, page + size)) != NULL)
		memcpy(p + 8, p, 8);
	if (rc == RC_OK && pwrite(fd, page, size, place) != (ssize_t)size)
		rc = RC_IO;
	free(page);
	return rc;
}

/* The lowest seal that the file must have. */
static uint64_t
seal_due(struct store_guard *g, struct db *db)
{
	const uint64_t known = atomic_load(&g->sealed);
	const uint64_t salt = atomic_load(&g->due_log);
	const uint64_t due = atomic_load(&g->due);

	return due > known && salt != 0 && salt == atomic_load(&g->due_log) &&
		db_log_is_moved(db, salt)
	    ? due
	    : known;
}

/* *what is wrong with the file, or NULL. */
static enum rc
compare_file(struct store_guard *g, struct db *db, unsigned char *page,
    const char **what)
{
	const uint64_t lowest = seal_due(g, db);
	int64_t longest = atomic_load(&g->file_size), length = 0;
	uint64_t seal = 0, before = atomic_load(&g->sealed);
	enum rc rc;

	*what = NULL;
	rc = db_read_file(
	    db, (g->page - 1) * g->page_size, page, (int)g->page_size, &length);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	if (rc == RC_OK)
		seal = seal_of_page(g, page, (size_t)g->page_size);
	if (seal < lowest)
		*what = "an older copy, or another file, was copied over it";
	else if (length < longest)
		*what = "its file was truncated";
	while (before < seal &&
	    !atomic_compare_exchange_weak(&g->sealed, &before, seal))
		continue;
	while (longest < length &&
	    !atomic_compare_exchange_weak(&g->file_size, &longest, length))
		continue;
	return RC_OK;
}

enum rc
store_guard_mapped(struct store_guard *g)
{
	if (atomic_load(&g->went_back))
		return RC_WENT_BACK;
	return db_is_torn()
	    ? store_guard_went_back(g, "the index of its log was truncated")
	    : RC_OK;
}

/* Reads what the log says of itself. */
static enum rc
read_base(struct store_guard *g, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_META_BASE);
	enum rc rc = db_step_row(s);
	const void *secret, *seal;
	size_t n, nseal;

	if (rc == RC_OK)
		rc = db_rowf(s, "bb", &secret, &n, &seal, &nseal);
	if (rc == RC_OK && n != sizeof(g->secret))
		rc = RC_CORRUPT;
	if (rc == RC_OK) {
		memcpy(g->secret, secret, n);
		store_guard_read_seal(g, seal, nseal);
	}
	db_reset(s);
	if (rc == RC_OK)
		rc = db_pragma(db, "page_size", &g->page_size);
	if (rc == RC_OK)
		rc = db_onef(db_stmt(db, QUERY_META_PAGE), "i", &g->page);
	return rc == RC_NOTFOUND || (rc == RC_OK && g->page <= 0) ? RC_CORRUPT
								  : rc;
}

/* Whether a page from first to last of the file has the base or a higher seal.
 * RC_NOTFOUND: none has. */
static enum rc
search_file(struct store_guard *g, struct db *db, int64_t first, int64_t last)
{
	unsigned char *page = malloc((size_t)g->page_size);
	enum rc rc = page == NULL ? RC_NOMEM : RC_OK;
	bool found = false;
	int64_t length;

	for (int64_t p = first; p <= last && rc == RC_OK && !found; p++) {
		rc = db_read_file(db, (p - 1) * g->page_size, page,
		    (int)g->page_size, &length);
		found = rc == RC_OK &&
		    seal_of_page(g, page, (size_t)g->page_size) >= g->base;
	}
	free(page);
	return rc == RC_OK && !found ? RC_NOTFOUND : rc;
}

/* The log may have another page of once_meta than the file, after a .restore:
 * then all pages are read. */
enum rc
store_guard_fits(struct store_guard *g, struct db *db)
{
	enum rc rc = db_begin_read(db);

	if (rc == RC_OK)
		rc = read_base(g, db);
	if (rc == RC_OK && g->base > 0) {
		rc = search_file(g, db, g->page, g->page);
		if (rc == RC_NOTFOUND)
			rc = search_file(g, db, 1, INT64_MAX / g->page_size);
		if (rc == RC_NOTFOUND)
			rc = store_guard_went_back(
			    g, "the file is older than its log");
	}
	db_rollback(db);
	return rc;
}

enum rc
store_guard_file(struct store_guard *g, struct db *db)
{
	unsigned char *page;
	const char *what = NULL;
	enum rc rc = RC_OK;

	if (store_guard_mapped(g) != RC_OK)
		return RC_WENT_BACK;
	if ((page = malloc((size_t)g->page_size)) == NULL)
		return RC_NOMEM;
	for (int i = 0; i < LOOKS; i++) {
		rc = compare_file(g, db, page, &what);
		if (rc == RC_OK && what != NULL && db_glances(db))
			rc = RC_BUSY;
		if (rc != RC_OK || what == NULL)
			break;
		usleep(PAUSE);
	}
	free(page);
	return rc == RC_OK && what != NULL ? store_guard_went_back(g, what)
					   : rc;
}
