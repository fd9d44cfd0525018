/*
 * Route and request -> a running handler: with which program, user and
 * environment.  The same for the program of an effect.
 */
#ifndef HANDLER_H
#define HANDLER_H

#include "cgienv.h"
#include "conf.h"
#include "request.h"
#include "run.h"

/*
 * Starts the handler of a request.  program: as the configuration names it; if
 * it is empty, SCRIPT_FILENAME names the program.  once: the attempt's
 * variables, or NULL for an unguarded request, for which the output is
 * streamed.  held: a descriptor that the handler's process tree inherits, or
 * -1.
 *
 * Returns NULL with facts->end == RUN_NOT_STARTED if the handler could not be
 * started; that is logged.
 */
struct run *handler_start(const struct conf_route *,
    const struct conf_list *program, const struct request *,
    const struct cgienv_once *once, int held, struct run_facts *facts);

/* The standard input of a program. */
struct handler_input {
	const void *bytes;
	size_t len;
	int fd; /* a file that holds them, or -1 */
};

/* The same for the program of an effect. */
struct run *handler_start_effect(const struct conf_effect *,
    const struct cgienv_effect *, const struct handler_input *,
    const char *instance, struct run_facts *facts);

#endif
