/*
 * Route and request -> a running handler: which program, in whose name, with
 * what environment; and the same for an effect.
 */
#ifndef HANDLER_H
#define HANDLER_H

#include "cgienv.h"
#include "conf.h"
#include "request.h"
#include "run.h"

/*
 * Starts the handler of a request: program, as the configuration names it, or
 * what SCRIPT_FILENAME names if that is empty.  once: the attempt's variables,
 * or NULL for a request that is not guarded, whose output is streamed.  held:
 * a descriptor to be inherited by its process tree, or -1.
 *
 * NULL with facts->end == RUN_NOT_STARTED if it could not be started; that is
 * logged.
 */
struct run *handler_start(const struct conf_route *,
    const struct conf_list *program, const struct request *,
    const struct cgienv_once *once, int held, struct run_facts *facts);

/* What a program reads on its standard input. */
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
