/*
 * The one place that knows both the configuration's words about a handler and
 * what a run needs.
 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "user.h"
#include "handler.h"

/* What SCRIPT_FILENAME names, split off from PATH_INFO by looking which part
 * of it is a file. */
static enum rc
find_script(const struct request *rq, struct cgienv_script *script)
{
	enum rc rc;

	if ((rc = cgienv_script_name(rq, script)) != RC_OK)
		return rc;
	while (!run_is_file(script->filename.data)) {
		if (!cgienv_script_shorten(script))
			return RC_NOTFOUND;
	}
	return RC_OK;
}

static void
not_started(const struct request *rq, struct run_facts *facts, const char *why)
{
	log_event(LOG_ERROR, "handler-not-started", rq->instance,
	    LOG_S("path", rq->path), LOG_S("why", why));
	memset(facts, 0, sizeof(*facts));
	facts->end = RUN_NOT_STARTED;
}

struct run *
handler_start(const struct conf_route *rule, const struct conf_list *program,
    const struct request *rq, const struct cgienv_once *once, int held,
    struct run_facts *facts)
{
	struct cgienv_script script;
	struct cgienv env = { 0 };
	struct run_spec spec;
	struct user user;
	struct run *run = NULL;
	char *argv[2] = { NULL, NULL };
	char err[128];
	bool is_script = program->n == 0;
	enum rc rc;

	cgienv_script_init(&script);
	memset(&spec, 0, sizeof(spec));
	if (is_script && find_script(rq, &script) != RC_OK) {
		not_started(rq, facts, "SCRIPT_FILENAME names no file");
		goto out;
	}
	if ((rc = cgienv_make(rq, rule, is_script ? &script : NULL, once,
		 environ, &env)) != RC_OK) {
		not_started(rq, facts, rc_text(rc));
		goto out;
	}
	if (rule->user != NULL || rule->group != NULL) {
		if (!user_find(
			rule->user, rule->group, &user, err, sizeof(err))) {
			not_started(rq, facts, err);
			goto out;
		}
		spec.user = &user;
	}
	argv[0] = script.filename.data;
	spec.argv = is_script ? argv : program->item;
	spec.envp = env.envp;
	spec.directory = rule->directory;
	spec.umask = rule->umask;
	spec.body = rq->body;
	spec.body_len = rq->body_len;
	spec.body_fd = rq->body_fd;
	spec.timeout = rule->timeout;
	spec.kill_after = rule->kill_after;
	spec.held = held;
	spec.streaming = once == NULL;
	spec.max_output = spec.streaming ? UINT64_MAX : rule->max_output;
	spec.instance = rq->instance;
	run = run_start(&spec, facts);
	FAULT(HANDLER_STARTED);
out:
	cgienv_free(&env);
	cgienv_script_free(&script);
	return run;
}
