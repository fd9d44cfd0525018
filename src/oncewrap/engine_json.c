/*
 * The body of a request as JSON, read once, in memory that requests share.
 */
#include "config.h"

#include "clock.h"
#include "leader.h"
#include "limit.h"
#include "engine_impl.h"

static struct budget *
json_budget(const struct job *job)
{
	return job->rq->body_len > LIMIT_SPOOL_MEMORY ? job->engine->large_json
						      : job->engine->small_json;
}

static bool
take_json_memory(struct job *job)
{
	const size_t cost = json_cost(job->rq->body_len);
	struct budget *budget = json_budget(job);
	bool taken = budget_take(budget, cost, 0);

	if (!taken && engine_begin_waiting(job->engine)) {
		taken = budget_take(
		    budget, cost, clock_mono() + job->conf->busy_timeout);
		engine_end_waiting(job->engine);
	}
	job->json_cost = taken ? cost : 0;
	job->json_refused = !taken;
	return taken;
}

static void
give_json_memory(struct job *job)
{
	if (job->json_cost != 0)
		budget_give(json_budget(job), job->json_cost);
	job->json_cost = 0;
}

enum rc
engine_read_json(struct job *job)
{
	const struct request *rq = job->rq;
	enum json_verdict verdict;

	if (job->json_known)
		return RC_OK;
	/* A large body takes long. */
	if (rq->body_len > LIMIT_SPOOL_MEMORY)
		leader_yield();
	if (rq->body == NULL && rq->body_len > 0)
		return RC_IO;
	if (!take_json_memory(job))
		return RC_LIMIT;
	verdict = json_read(&job->json, rq->body, rq->body_len);
	if (verdict != JSON_OK)
		give_json_memory(job);
	job->json_known = verdict != JSON_NO_MEMORY;
	return job->json_known ? RC_OK : RC_NOMEM;
}

void
engine_drop_json(struct job *job)
{
	json_free(job->json);
	job->json = NULL;
	job->json_known = false;
	give_json_memory(job);
}
