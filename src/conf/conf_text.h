/*
 * Configuration values that stay text: names, paths, addresses, and lists of
 * them.  The same contract as conf_value.h.
 */
#ifndef CONF_TEXT_H
#define CONF_TEXT_H

#include "conf_value.h"

/* Reads items separated by blanks or commas.  empty: no item at all is
 * allowed. */
bool conf_text_list(const char *text, enum conf_item kind, bool empty,
    struct conf_arena *arena, struct conf_list *out, struct conf_error *why);

/*
 * Reads a program and its arguments.  Quotes and backslashes are as in sh(1),
 * but nothing is expanded.  The program must be an absolute path.
 */
bool conf_text_argv(const char *text, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why);

/* The same for a handler, which may also be an address: "unix:/path" or
 * "tcp:host:port", as the only word. */
bool conf_text_handler(const char *text, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why);

/* The same from words that are already split. */
bool conf_text_words(char *const *argv, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why);

/* Whether the database is a URI of PostgreSQL, which may have a password. */
bool conf_text_is_postgresql(const char *database);

/* Whether a URI or conninfo string of PostgreSQL was meant, which oncewrap does
 * not take for one.  It may have a password, and must not be shown. */
bool conf_text_is_nearly_postgresql(const char *database);

/* Reads one text of that kind.  A socket's /path gains unix:, and a path is
 * read by conf_text_path(). */
bool conf_text_single(const char *text, enum conf_item kind,
    struct conf_arena *arena, const char **out, struct conf_error *why);

/*
 * Reads the path of a route, in the form of cginame_path(), without a slash at
 * its end.  Percent-encoded paths are refused: no request's path would match
 * them.
 */
bool conf_text_path(const char *text, struct conf_arena *arena,
    const char **out, struct conf_error *why);

#endif
