/*
 * Says in the log what was mended in a program's output (cgihead.h): each kind
 * once for each program.
 */
#ifndef MENDED_H
#define MENDED_H

#include "request.h"

/*
 * Logs what is new for the program among the bits of cgihead.mended.  A program
 * may be told again after a restart, or where another program has taken its
 * place in the table.  Any thread may call it.
 */
void mended_log(const char *program, const struct request *rq, unsigned bits);

#endif
