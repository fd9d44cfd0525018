/*
 * What was mended in the output of programs (cgihead.h), for the log.
 */
#ifndef MENDED_H
#define MENDED_H

#include "request.h"

/* Logs the bits of what was mended: each kind once for each program. */
void mended_log(const char *program, const struct request *rq, unsigned bits);

#endif
