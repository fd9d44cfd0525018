/*
 * Of a life: a body that is stored in pieces, in several transactions, and is
 * there in part when the power fails.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "life_impl.h"
#include "store_body.h"

/* The number of a body, from that of its piece; and which pieces are a part. */
#define NUMBER                                            \
	"CASE WHEN p.id < 0 THEN (p.id - 65535) / 65536 " \
	"ELSE p.id / 65536 END"
#define IS_PART NUMBER " IN (SELECT id FROM once_unnamed)"

int
life_part_select(sqlite3 *db, const char *table, sqlite3_stmt **s)
{
	char sql[512];

	if (strcmp(table, "once_piece") == 0)
		snprintf(sql, sizeof(sql),
		    "SELECT * FROM once_piece p WHERE NOT (" IS_PART
		    ") ORDER BY 1");
	else if (strcmp(table, "once_meta") == 0)
		/* The seal changes with each checkpoint, not with a verb. */
		snprintf(sql, sizeof(sql),
		    "SELECT id, secret, last_id, recent, kept_bytes "
		    "FROM once_meta");
	else
		snprintf(sql, sizeof(sql), "SELECT * FROM %s%s ORDER BY 1",
		    table,
		    strcmp(table, "once_unnamed") == 0 ? " WHERE 0" : "");
	return sqlite3_prepare_v2(db, sql, -1, s, NULL);
}

/* The one number that the statement returns; -1: none. */
static int64_t
number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t n = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return n;
}

int64_t
life_part_kept(sqlite3 *db)
{
	return number(db, "SELECT coalesce(sum(bytes), 0) FROM once_unnamed");
}

static sqlite3 *
open_file(const char *file)
{
	sqlite3 *db = NULL;

	if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL) !=
		SQLITE_OK ||
	    sqlite3_busy_timeout(db, 5000) != SQLITE_OK)
		abort();
	return db;
}

bool
life_has_part(const char *file)
{
	sqlite3 *db = open_file(file);
	bool has;

	has = number(db, "SELECT count(*) FROM once_unnamed") > 0;
	sqlite3_close(db);
	return has;
}

/* --- what a step leaves --------------------------------------------------- */

struct part {
	const struct life_key *k;
	size_t length; /* of the whole body */
	bool request;
	int64_t number; /* of the body */
	int64_t bytes;  /* that once_unnamed has for it */
};

static bool
expect(struct part *e, const struct life_key *k, const struct life_step *s)
{
	memset(e, 0, sizeof(*e));
	e->k = k;
	e->length = s->size;
	switch (s->verb) {
	case LIFE_RESERVE:
	case LIFE_ACCEPT:
		e->request = true;
		e->length = s->request;
		e->bytes = (int64_t)(life_environment_len + s->request);
		return s->asked || s->verb == LIFE_ACCEPT;
	case LIFE_RESOLVE:
	case LIFE_COMPLETE:
		return true;
	default:
		return false;
	}
}

/* Piece n of the body, from 0 on. */
static bool
piece_fits(const struct part *e, size_t n, const unsigned char *p, size_t size)
{
	const size_t from = n * STORE_PIECE;
	size_t i;

	/* The last one comes together with the key. */
	if (size != STORE_PIECE || from + size >= e->length)
		return false;
	for (i = 0; i < size; i++)
		if (p[i] !=
		    (e->request ? life_request_byte(from + i)
				: life_byte(e->k, from + i)))
			return false;
	return true;
}

static bool
pieces_fit(sqlite3 *db, const struct part *e)
{
	sqlite3_stmt *s = NULL;
	size_t n = 0;
	bool fit = true;
	int code;

	code = sqlite3_prepare_v2(db,
	    "SELECT p.id, p.body FROM once_piece p WHERE " IS_PART
	    " ORDER BY p.id",
	    -1, &s, NULL);
	while (code == SQLITE_OK && fit && sqlite3_step(s) == SQLITE_ROW) {
		fit = sqlite3_column_int64(s, 0) ==
			65536 * e->number + 1 + (int64_t)n &&
		    piece_fits(e, n, sqlite3_column_blob(s, 1),
			(size_t)sqlite3_column_bytes(s, 1));
		n++;
	}
	sqlite3_finalize(s);
	return fit && n > 0;
}

static bool
part_fits(sqlite3 *db, struct part *e)
{
	e->number = number(db, "SELECT id FROM once_unnamed");
	return number(db, "SELECT count(*) FROM once_unnamed") == 1 &&
	    e->number < 0 &&
	    number(db, "SELECT bytes FROM once_unnamed") == e->bytes &&
	    pieces_fit(db, e);
}

bool
life_part_fits(
    const char *file, const struct life *l, const struct life_step *s)
{
	const struct life_key *k, *end = l->key + l->nkeys;
	struct life_key none = { .name = s->key };
	struct part e;
	sqlite3 *db;
	bool fits;

	if (s->key == NULL)
		return false;
	for (k = l->key; k < end && strcmp(k->name, s->key) != 0; k++)
		continue;
	if (!expect(&e, k < end ? k : &none, s))
		return false;
	db = open_file(file);
	fits = part_fits(db, &e);
	sqlite3_close(db);
	return fits;
}
