/*
 * Tells an operator by a program (on_attention): that keys became unknown or
 * dead letters, and that new keys are refused.
 *
 * What happens is gathered as lines of JSON, in bounded memory, and the program
 * gets them on its standard input.  It is run at once, and then at most once in
 * attention_interval with all that has come since.  Lines whose program failed
 * are told again with the next run.
 *
 * Any thread may call the functions that note something.  They never wait for
 * the program, and do nothing where none is configured.
 */
#ifndef ATTENTION_H
#define ATTENTION_H

#include "conf.h"
#include "log.h"
#include "record.h"
#include "work.h"

/* From now on the configuration's program is told; of what was gathered before
 * nothing is lost, unless the configuration has no program.  store: is woken
 * when there is something to tell; NULL: as before. */
void attention_configure(const struct conf *conf, struct store *store);

/* A key is in that state now.  Nothing is noted unless an operator should know:
 * UNKNOWN or DEAD_LETTER.  key: path, key, scope, and the instance of a request
 * if there is one; or NULL.  why may be NULL. */
void attention_key(
    enum record_state state, const struct log_request *key, const char *why);

/* New keys are refused with that code, by that limit, or because of why; each
 * of the last four may be NULL.  The same refusal is told once in a run, with
 * the number of requests. */
struct attention_refusal {
	const char *code, *limit, *route, *caller, *why;
};
void attention_refused(const struct attention_refusal *refusal);

extern const struct work_kind attention_kind;

/* At the end of the daemon, when all other programs have ended: runs the
 * program for what is still to be told, for at most that time (ms).  The store
 * may be closed after it. */
void attention_end(const struct conf *conf, int64_t timeout);

#endif
