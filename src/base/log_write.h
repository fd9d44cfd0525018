/*
 * Where lines of the log go: standard error, syslog, or a file.  log.h makes
 * the lines.
 */
#ifndef LOG_WRITE_H
#define LOG_WRITE_H

#include <stdbool.h>
#include <stddef.h>

/* The longest line (bytes), with its newline. */
#define LOG_LINE_MAX 4096

/*
 * After this call no line waits for a reader of stderr that has stopped
 * reading: the line is dropped and counted, and a later line has the count.
 * Before the call, and in programs that do not make it, a line waits.  It is
 * called once, before there are threads.  Returns 0, or an errno value; then
 * lines still wait.
 */
int log_start(void);

/* Waits up to half a second for the last lines to leave; no line may
 * follow. */
void log_stop(void);

/*
 * Whether that file of that folder may be a log: a regular file with one name.
 * It belongs to this process's user or to root, or to any user if only root and
 * that user may write the folder: then no other has planted it there.
 */
struct stat;
bool log_may_be(const struct stat *file, const struct stat *folder);

/* For log.c: see log_open(); create: a file that is missing is made. */
int log_write_open(const char *target, bool create);

/* For log.c: closes the file and the socket; lines go to stderr again. */
void log_write_close(void);

/*
 * For log.c: writes a line with its newline, at most LOG_LINE_MAX bytes, to the
 * target; priority: of syslog(3).  False: the line was not written, or only a
 * part of it.  The next line begins a new line in either case.
 */
bool log_write(int priority, const char *line, size_t len);

/* The same, to stderr, whatever the target is. */
bool log_write_stderr(const char *line, size_t len);

/* Whether the target is stderr, and whether stderr is the journal, which takes
 * "<3>" in front of a line as the priority. */
bool log_write_is_stderr(void);
bool log_write_is_journal(void);

/* Whether the target adds the time of each line itself. */
bool log_write_has_time(void);

#endif
