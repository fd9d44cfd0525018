/*
 * The operator's own page for a problem: a file of the folder problem_pages.
 */
#ifndef PROBLEM_FILE_H
#define PROBLEM_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "prefer.h"
#include "problem.h"
#include "request.h"

/* A page that was read. */
struct problem_file {
	struct buf bytes;
	struct prefer_languages languages;
	char language[PREFER_TAG_LEN + 1];
	struct problem_template page; /* of the bytes; .bytes NULL: none */
};

/*
 * Reads the page of that code in the language that the client prefers.  What
 * cannot be read is logged, and the next file counts.  The caller frees the
 * file with problem_file_free(), whether there is a page or not.
 */
void problem_file_read(struct problem_file *file, const char *folder,
    enum problem_code code, const struct request *rq);
void problem_file_free(struct problem_file *file);

/* Whether each page of the folder has a name that is looked for.  False: why is
 * a sentence about one that has not. */
bool problem_file_names(const char *folder, char *why, size_t size);

#endif
