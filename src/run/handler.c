/*
 * The only file that knows both the configuration of a handler and the needs
 * of a run.
 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "user.h"
#include "handler.h"

/* Finds the program that SCRIPT_FILENAME names, and splits it off from
 * PATH_INFO by checking which part of it is a file. */
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

/* what: the request's path, or the effect's topic. */
static void
not_started(const char *instance, struct log_value what,
    struct run_facts *facts, const char *why)
{
	log_event(LOG_ERROR, "handler-not-started", instance, what,
	    LOG_S("why", why));
	memset(facts, 0, sizeof(*facts));
	facts->end = RUN_NOT_STARTED;
}

/* Starts the program of spec as that user and group, or as this process's own
 * where they are NULL. */
static struct run *
start_as(const char *name, const char *group, struct run_spec *spec,
    struct log_value what, struct run_facts *facts)
{
	struct user user;
	struct run *run;
	char err[128];

	if (name != NULL || group != NULL) {
		if (!user_find(name, group, &user, err, sizeof(err))) {
			not_started(spec->instance, what, facts, err);
			return NULL;
		}
		spec->user = &user;
	}
	run = run_start(spec, facts);
	spec->user = NULL;
	FAULT(HANDLER_STARTED);
	return run;
}

struct run *
handler_start(const struct conf_route *rule, const struct conf_list *program,
    const struct request *rq, const struct cgienv_once *once, int held,
    struct run_facts *facts)
{
	struct cgienv_script script;
	struct cgienv env = { 0 };
	struct run_spec spec;
	struct run *run = NULL;
	char *argv[2] = { NULL, NULL };
	bool is_script = program->n == 0;
	enum rc rc;

	cgienv_script_init(&script);
	memset(&spec, 0, sizeof(spec));
	if (is_script && find_script(rq, &script) != RC_OK) {
		not_started(rq->instance, LOG_S("path", rq->path), facts,
		    "SCRIPT_FILENAME names no file");
		goto out;
	}
	if ((rc = cgienv_make(rq, rule, is_script ? &script : NULL, once,
		 environ, &env)) != RC_OK) {
		not_started(
		    rq->instance, LOG_S("path", rq->path), facts, rc_text(rc));
		goto out;
	}
	argv[0] = script.filename.data;
	spec.argv = is_script ? argv : program->item;
	spec.envp = env.envp;
	spec.directory = rule->directory;
	spec.umask = rule->umask;
	spec.no_new_privs = rule->no_new_privs;
	spec.body = rq->body;
	spec.body_len = rq->body_len;
	spec.body_fd = rq->body_fd;
	spec.timeout = rule->timeout;
	spec.kill_after = rule->kill_after;
	spec.held = held;
	spec.streaming = once == NULL;
	spec.max_output = spec.streaming ? UINT64_MAX : rule->max_output;
	spec.instance = rq->instance;
	run = start_as(
	    rule->user, rule->group, &spec, LOG_S("path", rq->path), facts);
out:
	cgienv_free(&env);
	cgienv_script_free(&script);
	return run;
}

struct run *
handler_start_effect(const struct conf_effect *conf,
    const struct cgienv_effect *effect, const struct handler_input *input,
    const char *instance, struct run_facts *facts)
{
	struct cgienv env = { 0 };
	struct run_spec spec;
	struct run *run;
	enum rc rc;

	rc = cgienv_make_effect(conf, effect, environ, &env);
	if (rc != RC_OK) {
		not_started(instance, LOG_S("topic", effect->topic), facts,
		    rc_text(rc));
		return NULL;
	}
	memset(&spec, 0, sizeof(spec));
	spec.argv = conf->program.item;
	spec.envp = env.envp;
	spec.directory = conf->directory;
	spec.umask = conf->umask;
	spec.no_new_privs = conf->no_new_privs;
	spec.body = input->bytes;
	spec.body_len = input->len;
	spec.body_fd = input->fd;
	spec.timeout = conf->timeout;
	spec.kill_after = conf->kill_after;
	spec.held = -1;
	spec.max_output = conf->max_output;
	spec.instance = instance;
	run = start_as(conf->user, conf->group, &spec,
	    LOG_S("topic", effect->topic), facts);
	cgienv_free(&env);
	return run;
}
