/*
 * The other side of the FastCGI record layer: the bytes of a request for an
 * application, and events from the bytes of its answer.  fcgi.h is the
 * responder's side.
 *
 * A connection carries one request, and the application closes it after that:
 * FCGI_KEEP_CONN is never set.
 */
#ifndef FCGI_CLIENT_H
#define FCGI_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

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
	unsigned char header[8], end[8];
	size_t header_len, end_len;
	size_t content_left, padding_left;
	bool over; /* after END or ERROR, for good */
};

void fcgi_client_init(struct fcgi_client *c);

/* Takes up to len bytes and stops after the first event; *used is the number
 * of bytes that were taken.  After END and ERROR nothing may be fed. */
enum fcgi_client_event fcgi_client_feed(
    struct fcgi_client *c, const void *data, size_t len, size_t *used);

#endif
