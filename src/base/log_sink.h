/*
 * Inner header of log: lines on standard error.
 */
#ifndef LOG_SINK_H
#define LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a line with its newline, at most LOG_LINE_MAX bytes.  False: the line
 * was not written, or only a part of it.  The next line begins a new line in
 * either case. */
bool log_sink_write(const char *line, size_t len);

/* Whether lines go to the journal, which takes "<3>" in front as the
 * priority. */
bool log_sink_journal(void);

/* Counts a lost line. */
void log_sink_dropped(void);

#endif
