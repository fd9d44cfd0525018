/*
 * Which program is started, with which environment and standard input.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sealed.h"
#include "limit.h"
#include "log.h"
#include "run_impl.h"
#include "uuid.h"
#include "handler.h"

/* Why the file of that name is no program: an errno value. */
static int
why_no_program(const char *path)
{
	struct stat st;

	if (stat(path, &st) == -1)
		return errno;
	return S_ISDIR(st.st_mode) ? EISDIR : EACCES;
}

/* Finds the program that SCRIPT_FILENAME names, and splits it off from
 * PATH_INFO by checking which part of it is a file.  *error and *why: why
 * there is none. */
static enum rc
find_script(const struct request *rq, struct cgienv_script *script, int *error,
    const char **why)
{
	enum rc rc;

	*error = ENOENT;
	rc = cgienv_script_name(rq, script);
	*why = rc == RC_NOTFOUND ? "the web server sent no SCRIPT_FILENAME: "
				   "have it send one, or give the route a "
				   "handler"
				 : rc_text(rc);
	if (rc != RC_OK)
		return rc;
	*error = why_no_program(script->filename.data);
	*why = *error == EISDIR ? "SCRIPT_FILENAME names a folder"
				: "SCRIPT_FILENAME names no file";
	while (!run_is_file(script->filename.data)) {
		if (!cgienv_script_shorten(script))
			return RC_NOTFOUND;
	}
	return RC_OK;
}

static void
not_started(const struct log_request *log, const char *program,
    struct run_facts *facts, const char *why)
{
	log_event(LOG_ERROR, "handler-not-started", log,
	    LOG_S("program", program), LOG_S("why", why));
	memset(facts, 0, sizeof(*facts));
	facts->end = RUN_NOT_STARTED;
}

void
handler_prepend(char *path, size_t size)
{
	const char *folder = secure_getenv("ONCEWRAP_DATA");

	(void)snprintf(path, size, "%s/once-prepend.php",
	    folder != NULL && *folder != '\0' ? folder : DATA);
}

/* Has php-fpm run a file before the script, which says how the script ended.
 * PHP takes the last line of a name, so one of the web server's own wins. */
static enum rc
give_prepend(const struct conf_program *program, const struct request *rq,
    struct buf *value, struct cgienv_daemon *daemon)
{
	const char *sent = request_param(rq, "PHP_VALUE");
	char path[PATH_MAX];
	enum rc rc;

	if (!program->php_prepend || conf_program_address(program) == NULL)
		return RC_OK;
	handler_prepend(path, sizeof(path));
	rc = buf_addf(value, "auto_prepend_file=\"%s\"\n%s", path,
	    sent != NULL ? sent : "");
	daemon->php_value = value->data;
	return rc;
}

/* Makes ONCE_FORM_KEY, if the program gets one. */
static void
give_form_key(const struct conf_program *program, const unsigned char *secret,
    char key[UUID_LEN + 1], struct cgienv_daemon *daemon)
{
	if (!program->form_key)
		return;
	uuid_random(key);
	daemon->form_key = key;
	sealed_form_key(secret, key);
}

bool
handler_is_app(const struct conf_program *program)
{
	return program->argv.n > 0 &&
	    (program->protocol == CONF_PROTOCOL_FASTCGI ||
		conf_program_address(program) != NULL);
}

bool
handler_waits(const struct conf_program *program)
{
	const char *address = conf_program_address(program);

	return !handler_is_app(program) ||
	    (address != NULL && run_connect_waits(address));
}

struct run *
handler_start(const struct conf_program *program, const struct request *rq,
    const struct handler_call *call, struct run_facts *facts)
{
	const bool is_script = program->argv.n == 0;
	struct cgienv_script script;
	struct cgienv_daemon daemon = { .env = environ };
	struct cgienv env = { 0 };
	struct run_spec spec = {
		.program = *program,
		.body = rq->body,
		.body_len = rq->body_len,
		.body_fd = rq->body_fd,
		.held = call->held,
		.streaming = call->once == NULL,
		.log = rq->log,
		.errors = call->errors,
	};
	struct run *run = NULL;
	char form_key[UUID_LEN + 1];
	struct buf php_value;
	char *argv[2] = { NULL, NULL };
	const char *why;
	int error;
	enum rc rc;

	buf_init(&php_value, LIMIT_ENV);
	cgienv_script_init(&script);
	give_form_key(program, call->secret, form_key, &daemon);
	if (is_script && find_script(rq, &script, &error, &why) != RC_OK) {
		not_started(
		    rq->log, request_param(rq, "SCRIPT_FILENAME"), facts, why);
		facts->error = error;
	} else if ((rc = give_prepend(program, rq, &php_value, &daemon)) !=
		RC_OK ||
	    (rc = cgienv_make(rq, program, is_script ? &script : NULL,
		 call->once, &daemon, &env)) != RC_OK)
		not_started(rq->log,
		    is_script ? script.filename.data : program->argv.item[0],
		    facts, rc_text(rc));
	else {
		argv[0] = script.filename.data;
		if (is_script)
			spec.program.argv.item = argv;
		spec.envp = env.envp;
		run = handler_is_app(program)
		    ? run_start_app(&spec, program, facts)
		    : run_start(&spec, facts);
	}
	cgienv_free(&env);
	cgienv_script_free(&script);
	buf_free(&php_value);
	return run;
}

/* Starts a program that no request is for. */
static struct run *
start_alone(struct run_spec *spec, struct cgienv *env, enum rc rc,
    struct run_facts *facts)
{
	struct run *run = NULL;

	spec->held = -1;
	spec->envp = env->envp;
	if (rc == RC_OK)
		run = run_start(spec, facts);
	else
		not_started(
		    spec->log, spec->program.argv.item[0], facts, rc_text(rc));
	cgienv_free(env);
	return run;
}

struct run *
handler_start_effect(const struct conf_program *program,
    const struct cgienv_effect *effect, struct spool *payload,
    const struct log_request *log, struct run_facts *facts)
{
	struct cgienv env = { 0 };
	struct run_spec spec = {
		.program = *program, .body_fd = -1, .log = log
	};
	enum rc rc = RC_OK;

	if (payload != NULL) {
		spec.body = spool_bytes(payload, &rc);
		spec.body_len = (size_t)spool_length(payload);
		spec.body_fd = spool_fd(payload);
	}
	if (rc == RC_OK)
		rc = cgienv_make_effect(program, effect, environ, &env);
	return start_alone(&spec, &env, rc, facts);
}

struct run *
handler_start_notice(const struct conf_program *program, const void *text,
    size_t len, struct run_facts *facts)
{
	struct cgienv env = { 0 };
	struct run_spec spec = { .program = *program,
		.body = text,
		.body_len = len,
		.body_fd = -1 };
	const enum rc rc = cgienv_make_worker(program, "", environ, &env);

	return start_alone(&spec, &env, rc, facts);
}
