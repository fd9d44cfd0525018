/*
 * A configuration from a file.
 */
#ifndef CONFFILE_H
#define CONFFILE_H

#include "conf.h"

/* Reads and parses the file; NULL with "file: why" or "file:line: why" in
 * err. */
struct conf *conffile_load(const char *name, struct conf_error *err);

#endif
