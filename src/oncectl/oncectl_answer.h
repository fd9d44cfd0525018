/*
 * The input of oncectl, from standard input or a file: a response, or other
 * data.
 */
#ifndef ONCECTL_ANSWER_H
#define ONCECTL_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "spool.h"

struct oncectl_input {
	struct spool *spool; /* the first max bytes */
	uint64_t length;     /* of the whole input */
	const char *name;    /* the file's name; NULL: standard input */
};

/* Prints "oncectl: standard input: why" on stderr; returns false. */
bool oncectl_answer_bad(const char *why);

/* Reads all of standard input, or of the named file, and keeps max bytes.
 * Temporary files are made in dir.  False: reading failed; the reason was
 * printed. */
bool oncectl_answer_read(struct oncectl_input *in, uint64_t max);
/* Returns the kept bytes.  NULL: they could not be read again; the reason was
 * printed. */
const void *oncectl_answer_bytes(const struct oncectl_input *in);
void oncectl_answer_free(struct oncectl_input *in);

#endif
