/*
 * How a fingerprint is made: the text that is stored with a key, and what it
 * says.
 */
#ifndef FINGERPRINT_SPEC_H
#define FINGERPRINT_SPEC_H

#include <stdbool.h>

#include "buf.h"
#include "conf.h"
#include "conf_value.h"

/* The size of a field name's CGI variable; longer names are refused. */
#define FINGERPRINT_VARIABLE 1024

struct fingerprint_spec {
	int version;
	enum conf_fingerprint how;
	bool multipart; /* multipart bodies count by their parts */
	struct conf_list headers, ignore;
	struct conf_key_from keys;

	/* private */
	struct conf_alternative *key;
	struct conf_arena arena;
};

/*
 * Makes the spec of a route, a few lines of text.  Routes that compare alike
 * have the same spec.  RC_INVALID if an item holds a line feed or is empty,
 * RC_LIMIT (of out, or a field name too long) or RC_NOMEM.  out is cleared
 * first, and stays empty on failure.
 */
enum rc fingerprint_spec_write(const struct conf_route *route, struct buf *out);

/* RC_OK, RC_NOMEM, or RC_VERSION: this release does not know the text.  The
 * caller calls fingerprint_spec_free() in each case. */
enum rc fingerprint_spec_read(const char *text, struct fingerprint_spec *spec);
void fingerprint_spec_free(struct fingerprint_spec *spec);

#endif
