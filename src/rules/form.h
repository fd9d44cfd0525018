/*
 * The fields of a form, read as its bytes come: a body of type
 * application/x-www-form-urlencoded or multipart/form-data (RFC 7578), or a
 * query string.
 *
 * The memory is bounded by LIMIT_FORM_*, however long the body is.
 *
 *	form_feed(f, bytes, n);
 *	while ((event = form_next(f)) != FORM_NEED) ...
 *	...
 *	form_finish(f);
 *	while ((event = form_next(f)) != FORM_END && event != FORM_BAD) ...
 */
#ifndef FORM_H
#define FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

enum form_kind { FORM_NONE, FORM_URLENCODED, FORM_MULTIPART };

enum form_event {
	FORM_NEED,      /* more bytes, or form_finish() */
	FORM_FIELD,     /* a field begins: name ... type */
	FORM_DATA,      /* bytes of its value: data, len; never empty */
	FORM_FIELD_END, /* the value is complete */
	FORM_END,       /* the form is complete */
	FORM_BAD,       /* it is no form; and so at each later call */
	FORM_NO_MEMORY  /* the same */
};

/*
 * Callers read the first part, as the last event says, until the next call.
 * Values of an urlencoded form come as they were sent; see form_decode().
 */
struct form {
	struct buf name;      /* decoded */
	bool is_named;        /* a whole name is there */
	struct buf raw;       /* urlencoded: the name as sent, '=' included */
	bool has_file_name;   /* multipart */
	struct buf file_name; /* a NUL and that of filename* may follow */
	struct buf type;      /* multipart: the part's media type */
	const char *data;
	size_t len;

	/* private */
	enum form_kind kind;
	enum form_event over; /* each later call returns it; FORM_NEED: none */
	int state;
	const char *p, *end; /* the bytes that were not read yet */
	bool finished;
	struct buf head;
	char delimiter[4 + 200 + 1]; /* CRLF, "--", boundary */
	size_t delimiter_len, matched;
	size_t assumed; /* matched bytes that are no data of the part */
};

/* The kind of a body with that CONTENT_TYPE, which may be NULL. */
enum form_kind form_kind_of(const char *content_type);

/* content_type: of a multipart body, else unused.  A bad one is FORM_BAD at
 * the first form_next().  The caller calls form_free(). */
void form_init(struct form *f, enum form_kind kind, const char *content_type);
void form_free(struct form *f);

/* Gives the next bytes; they must stay until form_next() returns FORM_NEED. */
void form_feed(struct form *f, const void *bytes, size_t n);

/* No more bytes come. */
void form_finish(struct form *f);

enum form_event form_next(struct form *f);

/* Whether the current field has that name. */
bool form_has_name(const struct form *f, const char *name);

/* Decodes '+' and "%XX" in place; other '%' stay.  Returns the length. */
size_t form_decode(char *s, size_t n);

/* --- for form.c and form_multipart.c alone -------------------------------- */

enum form_state {
	/* urlencoded */
	STATE_START, /* nothing was read yet */
	STATE_NAME,
	STATE_VALUE,
	STATE_SEPARATOR, /* behind a field */
	/* multipart */
	STATE_PREAMBLE,
	STATE_DELIMITED, /* behind a delimiter */
	STATE_DASH,      /* behind a delimiter and '-' */
	STATE_PADDING,   /* blanks behind a delimiter */
	STATE_LINE_END,  /* behind the CR of a delimiter's line */
	STATE_HEAD,
	STATE_DATA,
	STATE_EPILOGUE
};

/* Returns the event, and so does each later form_next(). */
enum form_event form_over(struct form *f, enum form_event event);

/* Forgets the last field. */
void form_begin_field(struct form *f);

/* Gives the bytes up to end as data. */
enum form_event form_give_data(struct form *f, const char *end);

void form_multipart_init(struct form *f, const char *content_type);
enum form_event form_multipart_next(struct form *f);

#endif
