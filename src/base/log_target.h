/*
 * Inner header of log: standard error, syslog or a file.
 */
#ifndef LOG_TARGET_H
#define LOG_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "log.h"

/* See log_open(); create: a file that is missing is made. */
int log_target_open(const char *target, bool create);

/* Writes a line with its newline, at most LOG_LINE_MAX bytes.  False: the line
 * was not written, or only a part of it. */
bool log_target_write(enum log_level level, const char *line, size_t len);

/* Whether the target adds the time of each line itself. */
bool log_target_has_time(void);

bool log_target_is_stderr(void);

/* The priority of a level: syslog(3), sd-daemon(3). */
int log_target_priority(enum log_level level);

/* Closes the file and the socket; lines go to stderr again. */
void log_target_close(void);

#endif
