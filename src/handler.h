/*
 * Route and request -> a running handler: which program, in whose name, with
 * what environment.
 */
#ifndef HANDLER_H
#define HANDLER_H

#include "cgienv.h"
#include "conf.h"
#include "request.h"
#include "run.h"

/*
 * Starts the handler of a request.  once: the attempt's variables, or NULL for
 * a request that is not guarded, whose output is streamed.  NULL with
 * facts->end == RUN_NOT_STARTED if it could not be started; that is logged.
 */
struct run *handler_start(const struct conf_route *, const struct request *,
    const struct cgienv_once *once, struct run_facts *facts);

#endif
