/*
 * An answer owns its bytes: the spool of a handler's output or of the store,
 * or the text of a problem.
 */
#include "config.h"

#include <string.h>

#include "limit.h"
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
	response_free(&answer->response);
	spool_free(answer->spool);
	buf_free(&answer->text);
	answer_init(answer);
}
