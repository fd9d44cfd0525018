/*
 * What is given to oncectl on standard input or in a file: an answer, or
 * anything else.
 */
#ifndef ONCECTL_ANSWER_H
#define ONCECTL_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "cgihead.h"
#include "spool.h"

struct oncectl_input {
	struct spool *spool; /* the first max bytes */
	uint64_t length;     /* of all of it */
	const char *name;    /* of the file; NULL: standard input */
};

/* "oncectl: standard input: why" on stderr; false. */
bool oncectl_answer_bad(const char *why);

/* Reads all of standard input, or of the file that is named, and keeps max
 * bytes; temporary files are made in dir.  False: it could not, which is
 * said. */
bool oncectl_answer_read(struct oncectl_input *, uint64_t max);
/* What was kept; NULL: it could not be read again, which is said. */
const void *oncectl_answer_bytes(const struct oncectl_input *);
void oncectl_answer_free(struct oncectl_input *);

/*
 * A CGI response, by the rules that hold for a handler's: response
 * (initialised) gets its head without what is ours to say, and its body, which
 * lies in the input.  False: it is none, or says that it did not complete
 * anything, which is said.
 */
bool oncectl_answer_parse(
    const struct oncectl_input *, struct response *, struct cgihead *);

#endif
