/*
 * The configuration and the world: what a start, or a request, will not find.
 * Nothing here changes a file.
 */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "conf.h"

/* Writes a warning to stderr, with file and line, for each thing that will
 * fail later: -t.  Returns how many there are. */
unsigned world_check(const struct conf *conf);

/*
 * Why the database cannot be used, or the socket or the log not be opened, as
 * far as files, folders and their owners tell.  False: why is a sentence that
 * names the cause and the cure.
 */
bool world_database(const char *file, char *why, size_t size);
bool world_socket(const char *address, char *why, size_t size);
bool world_log(const char *target, char *why, size_t size);

#endif
