/*
 * The database file, past the log: see store_guard.h.
 *
 * While the log has newer pages than a file that was copied over it, a
 * transaction sees those, and older ones in place of all pages that are not in
 * the log.  So the file has a seal: a number behind the secret, in the one row
 * of once_meta.  It grows in the last transaction before the log is moved into
 * the file.  The file's seal never goes back, and what was not moved yet is in
 * the log.  A copy with the same seal has the same pages, or newer ones, which
 * are in the log too.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_guard.h"

/* Two numbers of 8 bytes, the highest byte first: the seal and its complement,
 * by which it is known in a page. */
#define SEAL_LEN 16

/* How often, and after which pause (us), a page is read again: it may be
 * written meanwhile. */
#define LOOKS 20
#define PAUSE 1000

uint64_t
store_guard_read_seal(const unsigned char *bytes, size_t n)
{
	uint64_t half[2] = { 0, 0 };

	if (n != SEAL_LEN)
		return 0;
	for (size_t i = 0; i < n; i++)
		half[i / 8] = half[i / 8] << 8 | bytes[i];
	return half[0] == ~half[1] ? half[0] : 0;
}

enum rc
store_guard_seal(struct store_guard *g, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_META_SEAL);
	const uint64_t n = g->seal + 1;
	unsigned char bytes[SEAL_LEN];

	for (int i = 0; i < 8; i++) {
		bytes[i] = (unsigned char)(n >> (56 - 8 * i));
		bytes[i + 8] = (unsigned char)~bytes[i];
	}
	db_bindf(s, "b", bytes, sizeof(bytes));
	return db_step_done(s);
}

/* The highest seal on the page: a row that was changed may have left its former
 * bytes there. */
static uint64_t
seal_of_page(
    const struct store_guard *g, const unsigned char *page, size_t size)
{
	const unsigned char *p = page, *end = page + size;
	const size_t len = sizeof(g->secret);
	uint64_t seal, highest = 0;

	while ((p = memmem(p, (size_t)(end - p), g->secret, len)) != NULL) {
		p += len;
		if (end - p < SEAL_LEN)
			break;
		seal = store_guard_read_seal(p, SEAL_LEN);
		if (seal > highest)
			highest = seal;
	}
	return highest;
}

/* *what is wrong with the file, or NULL. */
static enum rc
compare_file(struct store_guard *g, struct db *db, unsigned char *page,
    const char **what)
{
	const uint64_t known = atomic_load(&g->sealed);
	int64_t longest = atomic_load(&g->file_size), length = 0;
	uint64_t seal = 0, before = known;
	enum rc rc;

	*what = NULL;
	rc = db_read_file(
	    db, (g->page - 1) * g->page_size, page, (int)g->page_size, &length);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	if (rc == RC_OK)
		seal = seal_of_page(g, page, (size_t)g->page_size);
	if (seal < known)
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

enum rc
store_guard_find(struct store_guard *g, struct db *db)
{
	enum rc rc = db_pragma(db, "page_size", &g->page_size);

	if (rc == RC_OK)
		rc = db_onef(db_stmt(db, QUERY_META_PAGE), "i", &g->page);
	return rc == RC_OK && g->page <= 0 ? RC_CORRUPT : rc;
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
		if (rc != RC_OK || what == NULL)
			break;
		usleep(PAUSE);
	}
	free(page);
	return rc == RC_OK && what != NULL ? store_guard_went_back(g, what)
					   : rc;
}
