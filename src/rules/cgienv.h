/*
 * Request -> the handler's environment and program (RFC 3875); effect -> its
 * program's environment.
 *
 * Every FastCGI parameter but HTTP_PROXY, LD_*, ONCE_*, PATH, and names that
 * are no environment names; of a repeated name the last.  CONTENT_LENGTH is
 * filled in.  From the daemon PATH and what `environment` names, which wins
 * over a parameter of that name: the operator said so.  ONCE_* at the end.
 */
#ifndef CGIENV_H
#define CGIENV_H

#include "conf.h"
#include "request.h"

/* The ONCE_* variables of an attempt.  What a handler calls its token is the
 * lease's and the number of the key: "<token>-<id>". */
struct cgienv_once {
	const char *key, *scope, *path;
	int attempt;
	const char *recovery_point, *downstream_key;
	const char *token; /* "": there is no lease */
	int64_t id;
	const char *database; /* NULL: not shared */
};

/* The program that SCRIPT_FILENAME names, PATH_INFO split off. */
struct cgienv_script {
	struct buf filename;
	struct buf script_name;
	struct buf path_info;
	bool is_shortened; /* cgienv_script_shorten()'s own */
};

void cgienv_script_init(struct cgienv_script *);
void cgienv_script_free(struct cgienv_script *);

/*
 * SCRIPT_FILENAME, or DOCUMENT_ROOT + SCRIPT_NAME, without Apache's
 * "proxy:fcgi://host" prefix; not split yet.  RC_NOTFOUND if neither is there.
 */
enum rc cgienv_script_name(const struct request *, struct cgienv_script *);

/*
 * Moves the last segment of filename to the front of path_info, and takes it
 * off the end of script_name.  False when there is no segment left, or no room
 * for it.  The caller, who may look at files, calls it until filename is one.
 */
bool cgienv_script_shorten(struct cgienv_script *);

struct cgienv {
	char **envp; /* NULL-terminated */
	struct buf text;
};

/*
 * script and once may be NULL (handler named by the configuration; request
 * that is not guarded).  daemon_env is where `environment` and PATH are looked
 * up.  RC_LIMIT when the environment would exceed LIMIT_ENV.
 */
enum rc cgienv_make(const struct request *, const struct conf_route *,
    const struct cgienv_script *script, const struct cgienv_once *once,
    char *const *daemon_env, struct cgienv *out);

/* The ONCE_* variables of an effect. */
struct cgienv_effect {
	const char *effect_key, *topic, *key, *scope;
};

/* The same for the program of an effect, which has no request: those, PATH,
 * and what its `environment` names. */
enum rc cgienv_make_effect(const struct conf_effect *,
    const struct cgienv_effect *, char *const *daemon_env, struct cgienv *out);
void cgienv_free(struct cgienv *);

/*
 * The request's variables to be kept with its key: NAME=VALUE strings, each
 * with a NUL, appended to out.  Without HTTP_AUTHORIZATION,
 * HTTP_PROXY_AUTHORIZATION and HTTP_COOKIE.
 */
enum rc cgienv_keep(const struct request *, struct buf *out);

#endif
