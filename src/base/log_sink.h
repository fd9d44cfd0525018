/*
 * The inside of log: where lines go.
 */
#ifndef LOG_SINK_H
#define LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a line, with its newline, at most LOG_LINE_MAX bytes.  False: it was
 * not written, or not whole; what follows begins a line all the same. */
bool log_sink_write(const char *line, size_t len);

/* Lines go to the journal, which takes "<3>" in front as the priority. */
bool log_sink_journal(void);

/* Counts a line that is lost. */
void log_sink_dropped(void);

#endif
