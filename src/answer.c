/*
 * An answer owns its bytes: the spool of a handler's output or of the store,
 * or the text of a problem.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "limit.h"
#include "log.h"
#include "answer.h"

void
answer_init(struct answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	response_init(&answer->response);
	buf_init(&answer->text, LIMIT_PROBLEM);
}

void
answer_free(struct answer *answer)
{
	assert(answer->stream == NULL);
	response_free(&answer->response);
	spool_free(answer->spool);
	buf_free(&answer->text);
	answer_init(answer);
}

void
answer_problem(struct answer *answer, struct problem *problem,
    const struct conf *conf, const struct request *rq)
{
	struct response *response = &answer->response;

	problem->instance = rq->instance;
	log_event(LOG_INFO, "problem", rq->instance,
	    LOG_S("code", problem_name(problem->code)), LOG_S("path", rq->path),
	    LOG_S("detail", problem->detail));
	if (problem_make(problem, conf->link, conf->dialect, response,
		&answer->text) == RC_OK)
		return;
	/* No memory for a few hundred bytes: a status needs none. */
	response_free(response);
	response_init(response);
	response->status = 503;
}

void
answer_refuse(struct answer *answer, enum problem_code code, const char *detail,
    const struct conf *conf, const struct request *rq)
{
	struct problem problem;

	memset(&problem, 0, sizeof(problem));
	problem.code = code;
	problem.detail = detail;
	answer_problem(answer, &problem, conf, rq);
}

void
answer_stream_failed(struct answer *answer, const struct run_facts *facts,
    const struct conf *conf, const struct request *rq)
{
	answer_refuse(answer,
	    facts->end == RUN_TIMEOUT ? PROBLEM_HANDLER_TIMEOUT
				      : PROBLEM_HANDLER_FAILED,
	    "The program ended without an answer.", conf, rq);
}
