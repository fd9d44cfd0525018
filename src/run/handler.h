/*
 * A program of the configuration, for a request or for an effect -> a run.
 */
#ifndef HANDLER_H
#define HANDLER_H

#include "cgienv.h"
#include "conf.h"
#include "request.h"
#include "run.h"

/* What a run has besides its program and its request. */
struct handler_call {
	/* the attempt's variables, or NULL for an unguarded request, for which
	 * the output is streamed */
	const struct cgienv_once *once;
	int held; /* a descriptor that the program's processes inherit, or -1 */
	const unsigned char *secret; /* the store's, for ONCE_FORM_KEY */
	struct buf *errors;          /* see struct run_spec; or NULL */
};

/*
 * Starts a program for a request.  If the configuration names none (argv is
 * empty), SCRIPT_FILENAME does.
 *
 * Returns NULL with facts->end == RUN_NOT_STARTED if the program could not be
 * started; that is logged.
 */
struct run *
handler_start(const struct conf_program *program, const struct request *rq,
    const struct handler_call *call, struct run_facts *facts);

/* Whether the program is a FastCGI application, so that no process is started
 * for the request. */
bool handler_is_app(const struct conf_program *program);

/* Whether handler_start() may wait: for the disk, or for the name of a host.
 * Unless the program is a FastCGI application, the thread must live as long as
 * the run. */
bool handler_waits(const struct conf_program *program);

/* The same for the program of an effect.  Its payload is its standard input;
 * NULL: it is empty. */
struct run *handler_start_effect(const struct conf_program *program,
    const struct cgienv_effect *effect, struct spool *payload,
    const struct log_request *log, struct run_facts *facts);

/* The same for a program that is told something: the text is its standard
 * input, and it gets no ONCE_* variables. */
struct run *handler_start_notice(const struct conf_program *program,
    const void *text, size_t len, struct run_facts *facts);

/* Makes the name of the file that php-fpm runs before each script of a route
 * with preset = php-fpm. */
void handler_prepend(char *path, size_t size);

#endif
