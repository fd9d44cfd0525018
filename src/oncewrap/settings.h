/*
 * What oncewrap was started with, and the configuration that follows from it,
 * at the start and at each reload.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>

#include "conf.h"

struct settings {
	const char *file, *socket, *database, *workers; /* NULL: not given */
	char *const *handler;                           /* NULL: none */
	bool test;
};

/* The command line; false: exit with *status. */
bool settings_parse(int argc, char **argv, struct settings *, int *status);

/* Says on stderr how it is used, and returns the exit status of that. */
int settings_usage(void);

/* File, then flags, then the checks between them; NULL with the error. */
struct conf *settings_load(const struct settings *, struct conf_error *);

#endif
