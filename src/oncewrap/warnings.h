/*
 * The warnings of -t, in the order of the file.
 */
#ifndef WARNINGS_H
#define WARNINGS_H

#include <stddef.h>

#include "conf.h"

/* Begins as { .conf = conf }. */
struct warnings {
	const struct conf *conf;
	struct warning *item;
	size_t n;
};

/* Adds a warning about an option; both texts are copied.  line: 0 for one of
 * the command line, or of none. */
void warnings_add(
    struct warnings *w, conf_line line, const char *option, const char *why);

/* Writes them to stderr, each once, and frees them. */
void warnings_write(struct warnings *w);

#endif
