/*
 * PostgreSQL: the columns of a row, in the binary format of the protocol.
 */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include <libpq-fe.h>

#include "pg_impl.h"

/* Which letters read columns of a type, by its number in the catalog pg_type,
 * which is part of the protocol. */
static const struct {
	Oid type;
	const char *letters;
} readers[] = {
	{ 16, "?v-" },        /* boolean */
	{ 20, "imd?v-" },     /* bigint */
	{ 23, "imd?v-" },     /* integer */
	{ 21, "imd?v-" },     /* smallint */
	{ 25, "sfpbaev-" },   /* text */
	{ 1043, "sfpbaev-" }, /* character varying */
	{ 17, "sfpbaexwv-" }, /* bytea */
	{ 2950, "uv-" },      /* uuid */
};

static bool
letter_fits(const struct pg *pg, int i, char letter)
{
	const Oid type = PQftype(pg->result, i);

	for (size_t r = 0; r < sizeof(readers) / sizeof(readers[0]); r++)
		if (readers[r].type == type)
			return strchr(readers[r].letters, letter) != NULL;
	return letter == 'v' || letter == '-';
}

static const char *
value_at(const struct pg *pg, int i, size_t *n)
{
	*n = (size_t)PQgetlength(pg->result, pg->row, i);
	return PQgetisnull(pg->result, pg->row, i)
	    ? NULL
	    : PQgetvalue(pg->result, pg->row, i);
}

/* An integer of 1, 2, 4 or 8 bytes, the highest first; NULL is 0. */
static int64_t
number_at(const struct pg *pg, int i)
{
	const unsigned char *p;
	uint64_t number;
	size_t n;

	p = (const unsigned char *)value_at(pg, i, &n);
	if (p == NULL || n == 0)
		return 0;
	number = p[0] >= 0x80 ? UINT64_MAX : 0;
	for (size_t k = 0; k < n; k++)
		number = number << 8 | p[k];
	return (int64_t)number;
}

/* Reads the column for that letter. */
static enum rc
column_at(struct pg *pg, int i, char letter, struct row_column *c)
{
	if (!letter_fits(pg, i, letter))
		return pg_misused(pg, "a letter that its column does not fit");
	c->data = value_at(pg, i, &c->n);
	c->is = c->data != NULL;
	c->number = row_letter_is_number(letter) ? number_at(pg, i) : 0;
	return RC_OK;
}

/* --- rows by a format ----------------------------------------------------- */

enum rc
pg_next(struct pg *pg)
{
	if (pg->failure != PG_NONE)
		return pg->rc;
	if (pg->result == NULL || pg->row + 1 >= PQntuples(pg->result))
		return RC_NOTFOUND;
	pg->row++;
	return RC_OK;
}

enum rc
pg_vrow(struct pg *pg, const char *format, va_list *ap)
{
	struct row_column c;
	enum rc rc = RC_OK;

	if (strlen(format) != (size_t)PQnfields(pg->result))
		return pg_misused(pg, "a letter for each column");
	for (int i = 0; format[i] != '\0' && rc == RC_OK; i++)
		if ((rc = column_at(pg, i, format[i], &c)) == RC_OK)
			rc = row_put_next(&c, format[i], ap);
	return rc;
}

static enum rc
next_row(struct pg *pg, const char *format, va_list *ap)
{
	enum rc rc = pg_next(pg);

	return rc == RC_OK ? pg_vrow(pg, format, ap) : rc;
}

enum rc
pg_row(struct pg *pg, const char *format, ...)
{
	va_list ap;
	enum rc rc;

	va_start(ap, format);
	rc = next_row(pg, format, &ap);
	va_end(ap);
	return rc;
}

enum rc
pg_vone(struct pg *pg, const char *format, va_list *ap)
{
	enum rc rc = pg_result(pg);

	if (rc == RC_OK && pg_rows(pg) > 1)
		rc = RC_CORRUPT;
	return rc == RC_OK ? next_row(pg, format, ap) : rc;
}

enum rc
pg_one(struct pg *pg, const char *format, ...)
{
	va_list ap;
	enum rc rc;

	va_start(ap, format);
	rc = pg_vone(pg, format, &ap);
	va_end(ap);
	return rc;
}

/* --- rows as structs ------------------------------------------------------ */

static const char *
column_name(const void *result, int i)
{
	return PQfname(result, i);
}

enum rc
pg_members(struct pg *pg, const struct row_member *members, size_t n, void *out)
{
	struct row_column c;
	enum rc rc = RC_OK;
	int first;

	if (pg->result == NULL || pg->row < 0)
		return pg_misused(pg, "members without a row");
	first = row_first(
	    members, n, PQnfields(pg->result), column_name, pg->result);
	if (first == -1)
		return pg_misused(pg, "other columns than its reader has");
	for (const struct row_member *m = members;
	     m < members + n && rc == RC_OK; m++) {
		rc = column_at(pg, first + (int)(m - members), m->letter, &c);
		if (rc == RC_OK)
			rc = row_put(&c, m, (char *)out + m->offset);
	}
	return rc;
}
