/*
 * Request -> the handler's environment and program (RFC 3875); effect -> its
 * program's environment.
 *
 * The environment has every FastCGI parameter but HTTP_PROXY, LD_*, ONCE_*,
 * PATH, and names that are no environment names.  Of a repeated name the last
 * one counts.  CONTENT_LENGTH is filled in.  From the daemon's environment
 * come PATH and the variables that `environment` names.  These replace
 * parameters of the same name, because the operator chose them.  ONCE_* are
 * added last.
 */
#ifndef CGIENV_H
#define CGIENV_H

#include "conf.h"
#include "request.h"

/* The ONCE_* variables of an attempt.  The handler's token is made of the
 * lease's token and the id of the key: "<token>-<id>". */
struct cgienv_once {
	const char *key, *scope, *path;
	int attempt;
	const char *recovery_point, *downstream_key;
	const char *token; /* "": there is no lease */
	int64_t id;
	const char *database; /* NULL: not shared */
};

/* The program that SCRIPT_FILENAME names, with PATH_INFO split off. */
struct cgienv_script {
	struct buf filename;
	struct buf script_name;
	struct buf path_info;
	bool is_shortened; /* for cgienv_script_shorten() alone */
};

void cgienv_script_init(struct cgienv_script *s);
void cgienv_script_free(struct cgienv_script *s);

/*
 * Makes the name of the script: SCRIPT_FILENAME, or DOCUMENT_ROOT +
 * SCRIPT_NAME, without Apache's "proxy:fcgi://host" prefix, and not split yet.
 * RC_NOTFOUND if neither exists.
 */
enum rc cgienv_script_name(const struct request *rq, struct cgienv_script *s);

/*
 * Moves the last segment of filename to the front of path_info, and takes it
 * off the end of script_name.  False when no segment is left, or no room for
 * it.  The caller looks at files, and calls this until filename is one.
 */
bool cgienv_script_shorten(struct cgienv_script *s);

struct cgienv {
	char **envp; /* NULL-terminated */
	struct buf text;
};

/* What the daemon adds to the environment of a handler. */
struct cgienv_daemon {
	char *const *env;      /* its own environment */
	const char *form_key;  /* ONCE_FORM_KEY, or NULL */
	const char *php_value; /* in place of the request's, or NULL */
};

/*
 * Makes the environment.  script is NULL if the configuration names the
 * handler; once is NULL if the request is not guarded.  `environment` and PATH
 * are looked up in the daemon's.  RC_LIMIT when the environment would exceed
 * LIMIT_ENV.
 */
enum rc
cgienv_make(const struct request *rq, const struct conf_program *program,
    const struct cgienv_script *script, const struct cgienv_once *once,
    const struct cgienv_daemon *daemon, struct cgienv *out);

/* The ONCE_* variables of an effect. */
struct cgienv_effect {
	const char *effect_key, *topic, *key, *scope;
};

/* The same for the program of an effect, which has no request: the variables
 * of struct cgienv_effect, PATH, and those that its `environment` names. */
enum rc cgienv_make_effect(const struct conf_program *program,
    const struct cgienv_effect *effect, char *const *daemon_env,
    struct cgienv *out);

/* The same for a process that stays and gets its requests as FastCGI: PATH,
 * what its `environment` names, and token as ONCE_TOKEN ("": none). */
enum rc cgienv_make_worker(const struct conf_program *program,
    const char *token, char *const *daemon_env, struct cgienv *out);

void cgienv_free(struct cgienv *env);

/* HTTP_AUTHORIZATION, HTTP_PROXY_AUTHORIZATION, HTTP_COOKIE: its value is not
 * stored. */
bool cgienv_is_credential(const char *name);

/*
 * Appends the request's variables that are stored with its key to out:
 * NAME=VALUE strings, each with a NUL.  Credentials are left out.
 */
enum rc cgienv_keep(const struct request *rq, struct buf *out);

#endif
