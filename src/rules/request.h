/*
 * A request: the CGI meta-variables (RFC 3875, section 4.1) as the web server
 * sent them, in order, repeats included, and the body.
 *
 * Plain data.  The code that fills in the struct owns the data that it points
 * to.  All names and values are NUL-terminated and hold no NUL (mux refuses
 * such a request).
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "log.h"

struct param {
	const char *name;
	const char *value;
};

/* How the body arrived, compared with CONTENT_LENGTH and the limit. */
enum body_state {
	BODY_WHOLE,      /* the whole body */
	BODY_TOO_LARGE,  /* above the route's max_request_body */
	BODY_MISMATCH,   /* not as long as CONTENT_LENGTH says */
	BODY_BAD_LENGTH, /* CONTENT_LENGTH is no number */
	BODY_ABORTED,    /* the peer sent FCGI_ABORT_REQUEST */
	BODY_NO_ROOM,    /* all spools together hold too much */
	BODY_NO_SHARE,   /* other bodies of this client hold too much */
	BODY_UNSTORABLE  /* the spool failed: disk full, I/O error */
};

struct request {
	const struct param *params;
	size_t nparams;
	const char *invalid; /* why it cannot be handled, or NULL */
	const char *method;  /* REQUEST_METHOD, never NULL */
	const char *path;    /* see cginame_path(), never NULL */
	const char *query;   /* QUERY_STRING, never NULL */
	enum body_state body_state;
	const void *body; /* body_len bytes; NULL if there are none */
	size_t body_len;
	int body_fd; /* the file that holds the body, or -1: it is in memory */
	char instance[46]; /* urn:uuid:..., its name in responses and log */
	/* What the log says of it.  The code that finds out key, scope and
	 * status adds them.  NULL: it is not logged. */
	struct log_request *log;
};

/* Takes the next bytes of a body.  RC_OK, or the code that is to be
 * returned. */
typedef enum rc request_take_fn(void *arg, const void *bytes, size_t n);

/* Gives the whole body to a function, in parts that follow each other.  RC_OK,
 * RC_NOMEM, RC_IO (it could not be read whole), or what the function has
 * returned: it gets no more then. */
typedef enum rc
request_read_fn(const struct request *req, request_take_fn *take, void *arg);

/* The value of the last parameter of that name, which is the one for the
 * handler; NULL: there is none. */
const char *request_param(const struct request *req, const char *name);

/* The number of parameters of that name. */
size_t request_count(const struct request *req, const char *name);

/*
 * Returns how often a cookie is there (RFC 6265, section 4.2.1), and sets the
 * value of the first one, as it was sent.  A request with two HTTP_COOKIE
 * variables counts as having it twice: the handler sees only one of the two.
 */
size_t request_cookie(const struct request *req, const char *name,
    const char **value, size_t *len);

#endif
