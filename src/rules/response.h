/*
 * A response: status, header fields in order with repeats, body.
 *
 * Fields are kept as they will be sent: "Name: value\r\n" for each, one after
 * the other.  The body is borrowed; its owner must keep it alive.
 */
#ifndef RESPONSE_H
#define RESPONSE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "limit.h"

enum response_kind {
	RESPONSE_DOCUMENT,
	RESPONSE_LOCAL_REDIRECT /* Location: /path, no Status: web server's */
};

struct response {
	enum response_kind kind;
	int status;                /* 100-599 */
	char reason[LIMIT_REASON]; /* as the handler gave it, or "" */
	bool as_given; /* a stored one has all its fields: replay_drop too */
	struct buf fields;
	const void *body;
	size_t body_len;
};

/* A part of a head; borrowed, and not NUL-terminated. */
struct response_text {
	const char *p;
	size_t n;
};

struct field {
	struct response_text name, value; /* value: without blanks around it */
};

/* Makes an empty response with status 200. */
void response_init(struct response *r);
void response_free(struct response *r); /* does not free the body */

/* Adds oncewrap's own "name: value\r\n", for which there are LIMIT_OWN_FIELDS
 * beside the LIMIT_HEAD of a program.  RC_INVALID if name is no token, or if
 * value holds CR or LF; RC_LIMIT, RC_NOMEM. */
enum rc response_add(struct response *r, const char *name, const char *value);

/*
 * Adds fields as a program writes them: lines that end in LF or CRLF; the last
 * one may have no end.  RC_INVALID: a line is no field; some fields may have
 * been added.
 */
enum rc response_add_lines(struct response *r, const char *text, size_t len);

/* Whether a block consists of fields as they will be sent, and nothing
 * else. */
bool response_is_block(const char *text, size_t len);

/*
 * Steps through a block of fields: set *pos to 0 before the first call.  False
 * at the end.  The block must be well formed (response_add() or
 * cgihead_parse() made it).
 */
bool response_next(const struct buf *fields, size_t *pos, struct field *out);

/* Finds the first field of that name; false if there is none. */
bool
response_find(const struct buf *fields, const char *name, struct field *out);

/* Removes every field with one of n names. */
void response_remove(struct response *r, const char *const *names, size_t n);

/* Removes the fields that only oncewrap sends: clients would believe those of a
 * program. */
void response_remove_own(struct response *r);

/* Removes hop-by-hop fields (RFC 9110, section 7.6.1), and the fields that a
 * Connection field names. */
void response_remove_hop_by_hop(struct response *r);

/*
 * Appends the CGI head (RFC 3875, section 6.3) for the web server to out:
 * "Status: 201 Created\r\n", the fields, an empty line.  A local redirect has
 * no Status.  On failure out is unchanged.
 */
enum rc response_head(const struct response *r, struct buf *out);

/* A reason phrase for a status (RFC 9110), or "". */
const char *response_reason(int status);

/* --- the text of a head ----------------------------------------------- */

/* A token: RFC 9110, section 5.6.2. */
bool response_text_is_token(struct response_text t);

/* What a field's value may consist of: no control character but the tab (RFC
 * 9110, section 5.5). */
bool response_text_is_value(struct response_text t);

/* Whether the text is that word, in any case of letters. */
bool response_text_is(struct response_text t, const char *word);

/* Returns the text without blanks at its end, or at both ends. */
struct response_text response_text_trim_end(struct response_text t);
struct response_text response_text_trim(struct response_text t);

/* Takes one line off the front of rest, without its LF or CRLF.  False: there
 * is no whole line. */
bool response_text_line(struct response_text *rest, struct response_text *line);

/* Splits a line at its first colon, which neither part has; blanks stay.
 * False: there is none. */
bool response_text_split(struct response_text line, struct response_text *name,
    struct response_text *value);

#endif
