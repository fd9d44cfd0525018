/*
 * The FastCGI record layer (FastCGI Specification 1.0), without a socket:
 * bytes in, events out; and the bytes of responses.
 *
 * A connection carries one request at a time: a second one that begins before
 * the first is answered is refused with FCGI_CANT_MPX_CONN.  No input makes it
 * read or keep more than its limits.
 */
#ifndef FCGI_H
#define FCGI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "request.h"

/* --- records, for fcgi.c and fcgi_client.c alone ---------------------- */

/* A record that is being read.  The bodies of records that are read whole have
 * FCGI_BODY_SIZE bytes. */
#define FCGI_BODY_SIZE 8
struct fcgi_record {
	unsigned char header[8], body[FCGI_BODY_SIZE]; /* the first bytes */
	size_t header_len, content_left, padding_left;
};

enum fcgi_part {
	FCGI_PART_NONE,    /* the input is used up */
	FCGI_PART_HEADER,  /* the header is complete */
	FCGI_PART_CONTENT, /* n bytes of content */
	FCGI_PART_END      /* content and padding are complete */
};

/* Takes the next part of a record off the front of the input. */
enum fcgi_part fcgi_record_next(struct fcgi_record *r, const unsigned char **p,
    const unsigned char *end, const unsigned char **content, size_t *n);

unsigned fcgi_record_type(const struct fcgi_record *r);
uint16_t fcgi_record_id(const struct fcgi_record *r);
size_t fcgi_record_length(const struct fcgi_record *r);

/* --- the server's side ------------------------------------------------ */

enum fcgi_event {
	FCGI_EV_MORE,  /* all input is used up */
	FCGI_EV_HEAD,  /* the parameters are complete */
	FCGI_EV_BODY,  /* some bytes of the body: .body, .body_len */
	FCGI_EV_END,   /* the body is complete */
	FCGI_EV_ABORT, /* the web server aborted this request */
	FCGI_EV_REPLY, /* .reply holds bytes to send at once */
	FCGI_EV_ERROR  /* not FastCGI, or above a limit: .why */
};

struct fcgi {
	/* results of fcgi_feed() */
	const char *why;           /* FCGI_EV_ERROR: static text */
	const unsigned char *body; /* FCGI_EV_BODY: points into the input */
	size_t body_len;
	struct buf reply; /* FCGI_EV_REPLY: the caller clears it */
	/* of the request under way */
	uint16_t id; /* 0: there is no request */
	bool keep_conn;
	struct param *params; /* FCGI_EV_HEAD and later */
	size_t nparams;
	bool has_nul; /* a name or value holds a NUL byte */
	/* a request was refused and its connection is not to be kept: close it
	 * once .reply is sent */
	bool closing;
	/* inner state: fcgi.c */
	struct buf text; /* raw parameter bytes, then strings */
	struct fcgi_record in;
	int state;
};

void fcgi_init(struct fcgi *f);
void fcgi_free(struct fcgi *f);

/*
 * Takes up to len bytes and stops after the first event; *used is the number
 * of bytes that were taken.  Call it again with the rest.  After FCGI_EV_END
 * nothing may be fed until fcgi_next().
 */
enum fcgi_event
fcgi_feed(struct fcgi *f, const void *data, size_t len, size_t *used);

/* Forgets the request and expects the next one on the connection. */
void fcgi_next(struct fcgi *f);

/* Whether it is between requests and between records. */
bool fcgi_idle(const struct fcgi *f);

/* Writes the header of a record: section 3.3 of the specification. */
void fcgi_put_header(unsigned char out[8], unsigned type, uint16_t id,
    size_t length, size_t padding);

/* Writes the header of a STDOUT record with n bytes of content (n <= 65535).
 * Returns how many bytes of padding must follow the content. */
#define FCGI_HEADER_SIZE 8
#define FCGI_CONTENT_MAX 65528
size_t fcgi_stdout_header(uint16_t id, size_t n, unsigned char out[8]);

/* Writes the end of STDOUT and the END_REQUEST record: 24 bytes. */
#define FCGI_END_SIZE 24
void
fcgi_end(uint16_t id, uint32_t app_status, unsigned char out[FCGI_END_SIZE]);

/* --- the client's side ------------------------------------------------ */

/*
 * The bytes of a request for an application, and events from the bytes of its
 * answer.  A connection carries one request, and the application closes it
 * after that: FCGI_KEEP_CONN is never set.
 */

/*
 * Appends FCGI_BEGIN_REQUEST and all parameters to out.  envp: strings
 * NAME=VALUE, then NULL; but is the name of a variable that is left out, or
 * NULL.
 */
enum rc fcgi_client_begin(struct buf *out, char *const *envp, const char *but);

/* Appends one record of the body with n bytes (n <= FCGI_CONTENT_MAX); 0 bytes
 * end the body. */
enum rc fcgi_client_stdin(struct buf *out, const void *bytes, size_t n);

enum fcgi_client_event {
	FCGI_CLIENT_MORE,   /* all input is used up */
	FCGI_CLIENT_STDOUT, /* some bytes of the output: .bytes, .len */
	FCGI_CLIENT_STDERR, /* some bytes for the log: .bytes, .len */
	FCGI_CLIENT_END,    /* the request has ended: .status, .refused */
	FCGI_CLIENT_ERROR   /* no answer to this request: .why */
};

struct fcgi_client {
	/* results of fcgi_client_feed() */
	const unsigned char *bytes; /* points into the input */
	size_t len;
	uint32_t status; /* the application's, as of exit(3) */
	bool refused;    /* the application did not take the request */
	const char *why; /* static text */
	/* inner state: fcgi_client.c */
	struct fcgi_record in;
	bool over; /* after END or ERROR, for good */
};

void fcgi_client_init(struct fcgi_client *c);

/* Takes up to len bytes and stops after the first event; *used is the number
 * of bytes that were taken.  After END and ERROR nothing may be fed. */
enum fcgi_client_event fcgi_client_feed(
    struct fcgi_client *c, const void *data, size_t len, size_t *used);

#endif
