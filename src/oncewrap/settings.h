/*
 * The flags of oncewrap, and the configuration made from them and the file, at
 * the start and at each reload.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "conf.h"
#include "serve.h"
#include "store.h"

struct settings {
	const char *file, *socket, *database, *workers; /* NULL: not given */
	char *const *handler;                           /* NULL: none */
	bool test;
};

/* Parses the command line; false: exit with *status. */
bool settings_parse(int argc, char **argv, struct settings *opt, int *status);

/* Prints the usage, and returns the exit status: on stderr it was wrong. */
int settings_usage(FILE *file);

/* Reads the file, then the flags, then checks both together; NULL: see the
 * error. */
struct conf *settings_load(const struct settings *opt, struct conf_error *err);

/* Logs what the daemon has started with. */
void settings_log_started(const struct store *store, const struct conf *conf);

/* Puts the new configuration in the place of the old one, in all parts.  False,
 * with a sentence in err: the old one stays, whole. */
bool settings_reload(struct store *store, struct serve *serve,
    const struct conf *old, struct conf *new, struct conf_error *err);

/* Logs which options differ from those of the start, which stay in use. */
void settings_warn_of_start(const struct conf *start, const struct conf *now);

/* Opens the log; a file is opened anew.  After an error, which is logged, the
 * log stays as it was. */
void settings_reopen_log(const char *target);

#endif
