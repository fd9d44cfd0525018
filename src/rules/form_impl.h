/*
 * What the two readers of forms share: for form.c and form_multipart.c alone.
 */
#ifndef FORM_IMPL_H
#define FORM_IMPL_H

#include "form.h"

enum state {
	STATE_BAD,
	STATE_NO_MEMORY,
	STATE_END,
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

/* Each sets the state, and returns the event.  why: static storage. */
enum form_event form_bad(struct form *f, const char *why);
enum form_event form_no_memory(struct form *f);

/* Forgets the last field. */
void form_begin_field(struct form *f);

/* Gives the bytes up to end as data. */
enum form_event form_give_data(struct form *f, const char *end);

void form_multipart_init(struct form *f, const char *content_type);
enum form_event form_multipart_next(struct form *f);

#endif
