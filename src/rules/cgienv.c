/*
 * Request -> the handler's environment and program (RFC 3875).
 *
 * Variables are gathered in order of growing authority, and of those with one
 * name the last one counts:
 *
 *  1. the web server's variables, except the names that would let a client
 *     reach the loader, the program's own HTTP clients, or the ONCE_*
 *     variables;
 *  2. values that oncewrap knows better: the length of the body, the program's
 *     name;
 *  3. the daemon's variables that the operator named, and PATH;
 *  4. ONCE_*.
 *
 * This file knows no files, not the daemon's real environment, and not whether
 * a request is guarded.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "record.h"
#include "cgienv.h"

/* The PATH where the daemon has none: Debian's PATH for a user's processes. */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* --- the program ------------------------------------------------------- */

void
cgienv_script_init(struct cgienv_script *s)
{
	buf_init(&s->filename, LIMIT_PATH);
	/* Each may take over the bytes of the others. */
	buf_init(&s->script_name, (size_t)2 * LIMIT_PATH);
	buf_init(&s->path_info, (size_t)2 * LIMIT_PATH);
	s->is_shortened = false;
}

void
cgienv_script_free(struct cgienv_script *s)
{
	if (s == NULL)
		return;
	buf_free(&s->filename);
	buf_free(&s->script_name);
	buf_free(&s->path_info);
}

/*
 * Removes the prefix of Apache's mod_proxy_fcgi, which sends
 * "proxy:fcgi://host:port/path", "proxy:balancer://name/path" or
 * "proxy:unix:/socket|fcgi://host/path".  Any other text is a file name
 * already.
 */
static const char *
without_proxy(const char *filename)
{
	static const char proxy[] = "proxy:", local[] = "unix:";
	const char *p = filename, *path;

	if (strncmp(p, proxy, sizeof(proxy) - 1) != 0)
		return filename;
	p += sizeof(proxy) - 1;
	if (strncmp(p, local, sizeof(local) - 1) == 0) {
		if ((p = strchr(p, '|')) == NULL)
			return filename;
	}
	/* The scheme has no slash of its own: the first two begin the host. */
	p = strchr(p, '/');
	if (p == NULL || p[1] != '/')
		return filename;
	path = strchr(p + 2, '/');
	return path != NULL ? path : filename;
}

/* Returns a parameter that exists and is not empty, or NULL. */
static const char *
env_param(const struct request *rq, const char *name)
{
	const char *value = request_param(rq, name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

enum rc
cgienv_script_name(const struct request *rq, struct cgienv_script *s)
{
	const char *filename = env_param(rq, "SCRIPT_FILENAME");
	const char *root = env_param(rq, "DOCUMENT_ROOT");
	const char *name = env_param(rq, "SCRIPT_NAME");
	const char *info = env_param(rq, "PATH_INFO");
	enum rc rc;

	if (filename != NULL) {
		rc = buf_adds(&s->filename, without_proxy(filename));
	} else if (root != NULL && name != NULL) {
		rc = buf_addf(&s->filename, "%s%s", root, name);
	} else {
		return RC_NOTFOUND;
	}
	if (rc == RC_OK && name != NULL)
		rc = buf_adds(&s->script_name, name);
	if (rc == RC_OK && info != NULL)
		rc = buf_adds(&s->path_info, info);
	return rc;
}

static bool
ends_with(const struct buf *b, const char *tail, size_t n)
{
	return b->len >= n && memcmp(b->data + b->len - n, tail, n) == 0;
}

static enum rc
prepend_bytes(struct buf *b, const char *bytes, size_t n)
{
	enum rc rc = buf_reserve(b, n);

	if (rc != RC_OK)
		return rc;
	memmove(b->data + n, b->data, b->len);
	memcpy(b->data, bytes, n);
	buf_commit(b, n);
	return RC_OK;
}

/* A web server may split PATH_INFO off the URL and leave it in the file name,
 * where it would count twice.  It is put back first. */
static enum rc
script_unsplit(struct cgienv_script *s)
{
	struct buf *info = &s->path_info;
	enum rc rc;

	if (info->len == 0 || info->data[0] != '/' ||
	    !ends_with(&s->filename, info->data, info->len))
		return RC_OK;
	if (!ends_with(&s->script_name, info->data, info->len)) {
		rc = buf_add(&s->script_name, info->data, info->len);
		if (rc != RC_OK)
			return rc;
	}
	buf_clear(info);
	return RC_OK;
}

bool
cgienv_script_shorten(struct cgienv_script *s)
{
	const char *segment = strrchr(s->filename.data, '/');
	size_t n;

	if (segment == NULL || segment == s->filename.data)
		return false;
	if (!s->is_shortened && script_unsplit(s) != RC_OK)
		return false;
	s->is_shortened = true;
	n = s->filename.len - (size_t)(segment - s->filename.data);
	if (prepend_bytes(&s->path_info, segment, n) != RC_OK)
		return false;
	if (ends_with(&s->script_name, segment, n))
		buf_truncate(&s->script_name, s->script_name.len - n);
	buf_truncate(&s->filename, s->filename.len - n);
	return true;
}

/* --- the environment --------------------------------------------------- */

struct var {
	const char *name, *value;
	size_t name_len;
};

/* Each name is in var once. */
struct vars {
	struct var *var;
	size_t n, cap;
};

/* Numbers as text; they live as long as the vars that point to them. */
struct numbers {
	char length[24], attempt[24];
	char token[RECORD_TOKEN_LEN + 24];
};

/* Adds a variable, in place of the one of that name if there is one.  A name
 * ends at its NUL, or before "=". */
static void
vars_add(struct vars *vs, const char *name, const char *value)
{
	const size_t len = strcspn(name, "=");

	for (struct var *v = vs->var; v < vs->var + vs->n; v++)
		if (v->name_len == len && memcmp(v->name, name, len) == 0) {
			v->value = value;
			return;
		}
	assert(vs->n < vs->cap);
	vs->var[vs->n++] = (struct var){ name, value, len };
}

static bool
has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/*
 * Left out: HTTP_PROXY is a client's `Proxy` field, and would send the
 * handler's own requests anywhere.  LD_* are the loader's.  ONCE_* are set by
 * oncewrap alone.  PATH is the web server's and of no meaning here.
 */
static bool
is_passed_on(const char *name)
{
	if (name[0] == '\0' || strchr(name, '=') != NULL)
		return false;
	return strcmp(name, "HTTP_PROXY") != 0 && strcmp(name, "PATH") != 0 &&
	    !has_prefix(name, "LD_") && !has_prefix(name, "ONCE_");
}

static void
add_request(struct vars *vs, const struct request *rq, struct numbers *numbers)
{
	for (size_t i = 0; i < rq->nparams; i++)
		if (is_passed_on(rq->params[i].name))
			vars_add(vs, rq->params[i].name, rq->params[i].value);
	/* RFC 3875, section 4.1.2; some servers leave it out or send it
	 * empty. */
	if (rq->body_len > 0 || request_param(rq, "CONTENT_LENGTH") != NULL) {
		snprintf(numbers->length, sizeof(numbers->length), "%zu",
		    rq->body_len);
		vars_add(vs, "CONTENT_LENGTH", numbers->length);
	}
}

/* An empty value replaces a parameter that was sent, but is not added without
 * one. */
static void
add_replaced(struct vars *vs, const struct request *rq, const char *name,
    const char *value)
{
	if (value[0] != '\0' || request_param(rq, name) != NULL)
		vars_add(vs, name, value);
}

static void
add_program(struct vars *vs, const struct request *rq,
    const struct cgienv_script *script)
{
	const char *filename = env_param(rq, "SCRIPT_FILENAME");

	if (script != NULL) {
		vars_add(vs, "SCRIPT_FILENAME", script->filename.data);
		add_replaced(vs, rq, "SCRIPT_NAME", script->script_name.data);
		add_replaced(vs, rq, "PATH_INFO", script->path_info.data);
	} else if (filename != NULL) {
		vars_add(vs, "SCRIPT_FILENAME", without_proxy(filename));
	}
}

/* Returns the value of one of the daemon's variables, or NULL. */
static const char *
daemon_value(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env != NULL && *env != NULL; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static void
add_daemon(struct vars *vs, char *const *env, const struct conf_list *given)
{
	const char *value = daemon_value(env, "PATH"), *equals;

	vars_add(vs, "PATH", value != NULL ? value : DEFAULT_PATH);
	for (size_t i = 0; i < given->n; i++) {
		equals = strchr(given->item[i], '=');
		value = equals != NULL ? equals + 1
				       : daemon_value(env, given->item[i]);
		if (value != NULL)
			vars_add(vs, given->item[i], value);
	}
}

static void
add_once(struct vars *vs, const struct cgienv_once *o, struct numbers *numbers)
{
	if (o == NULL)
		return;
	snprintf(numbers->attempt, sizeof(numbers->attempt), "%d", o->attempt);
	vars_add(vs, "ONCE_KEY", o->key);
	vars_add(vs, "ONCE_SCOPE", o->scope);
	vars_add(vs, "ONCE_PATH", o->path);
	vars_add(vs, "ONCE_ATTEMPT", numbers->attempt);
	vars_add(vs, "ONCE_RECOVERY_POINT", o->recovery_point);
	vars_add(vs, "ONCE_DOWNSTREAM_KEY", o->downstream_key);
	if (o->token[0] != '\0') {
		snprintf(numbers->token, sizeof(numbers->token), "%s-%" PRId64,
		    o->token, o->id);
		vars_add(vs, "ONCE_TOKEN", numbers->token);
	}
	if (o->database != NULL)
		vars_add(vs, "ONCE_DATABASE", o->database);
}

static enum rc
write_out(const struct vars *vs, struct cgienv *out)
{
	size_t size = 0, len;
	const struct var *v;
	enum rc rc;
	char *p;

	if (vs->n > LIMIT_ENV_COUNT)
		return RC_LIMIT;
	for (v = vs->var; v < vs->var + vs->n; v++)
		size += v->name_len + strlen(v->value) + 2;
	/* Reserved all at once: envp points into the text, so it must not
	 * move. */
	if ((rc = buf_reserve(&out->text, size)) != RC_OK)
		return rc;
	out->envp = calloc(vs->n + 1, sizeof(out->envp[0]));
	if (out->envp == NULL)
		return RC_NOMEM;
	p = out->text.data;
	for (v = vs->var; v < vs->var + vs->n; v++) {
		out->envp[v - vs->var] = p;
		memcpy(p, v->name, v->name_len);
		p += v->name_len;
		*p++ = '=';
		len = strlen(v->value) + 1;
		memcpy(p, v->value, len);
		p += len;
	}
	assert(p == out->text.data + size);
	buf_commit(&out->text, size);
	return RC_OK;
}

static enum rc
vars_begin(struct vars *vs, size_t cap, struct cgienv *out)
{
	out->envp = NULL;
	buf_init(&out->text, LIMIT_ENV);
	vs->n = 0;
	vs->cap = cap;
	vs->var = malloc(cap * sizeof(vs->var[0]));
	return vs->var != NULL ? RC_OK : RC_NOMEM;
}

static enum rc
vars_end(struct vars *vs, struct cgienv *out)
{
	enum rc rc = write_out(vs, out);

	free(vs->var);
	if (rc != RC_OK)
		cgienv_free(out);
	return rc;
}

enum rc
cgienv_make(const struct request *rq, const struct conf_program *program,
    const struct cgienv_script *script, const struct cgienv_once *once,
    const struct cgienv_daemon *daemon, struct cgienv *out)
{
	struct numbers numbers;
	struct vars vs;
	enum rc rc;

	/* CONTENT_LENGTH, PHP_VALUE, REDIRECT_STATUS, the program's three,
	 * PATH, nine ONCE_* */
	rc = vars_begin(&vs, rq->nparams + program->environment.n + 16, out);
	if (rc != RC_OK)
		return rc;
	add_request(&vs, rq, &numbers);
	add_program(&vs, rq, script);
	if (program->php_cgi) /* without it php-cgi serves nothing */
		vars_add(&vs, "REDIRECT_STATUS", "200");
	if (daemon->php_value != NULL)
		vars_add(&vs, "PHP_VALUE", daemon->php_value);
	add_daemon(&vs, daemon->env, &program->environment);
	if (daemon->form_key != NULL)
		vars_add(&vs, "ONCE_FORM_KEY", daemon->form_key);
	add_once(&vs, once, &numbers);
	return vars_end(&vs, out);
}

enum rc
cgienv_make_effect(const struct conf_program *program,
    const struct cgienv_effect *effect, char *const *daemon_env,
    struct cgienv *out)
{
	struct vars vs;
	enum rc rc;

	/* PATH, four ONCE_*. */
	rc = vars_begin(&vs, program->environment.n + 5, out);
	if (rc != RC_OK)
		return rc;
	add_daemon(&vs, daemon_env, &program->environment);
	vars_add(&vs, "ONCE_EFFECT_KEY", effect->effect_key);
	vars_add(&vs, "ONCE_TOPIC", effect->topic);
	vars_add(&vs, "ONCE_KEY", effect->key);
	vars_add(&vs, "ONCE_SCOPE", effect->scope);
	return vars_end(&vs, out);
}

enum rc
cgienv_make_worker(const struct conf_program *program, const char *token,
    char *const *daemon_env, struct cgienv *out)
{
	struct vars vs;
	enum rc rc;

	if ((rc = vars_begin(&vs, program->environment.n + 2, out)) != RC_OK)
		return rc;
	add_daemon(&vs, daemon_env, &program->environment);
	if (token[0] != '\0')
		vars_add(&vs, "ONCE_TOKEN", token);
	return vars_end(&vs, out);
}

void
cgienv_free(struct cgienv *env)
{
	if (env == NULL)
		return;
	free(env->envp);
	env->envp = NULL;
	buf_free(&env->text);
}

bool
cgienv_is_credential(const char *name)
{
	return strcmp(name, "HTTP_AUTHORIZATION") == 0 ||
	    strcmp(name, "HTTP_PROXY_AUTHORIZATION") == 0 ||
	    strcmp(name, "HTTP_COOKIE") == 0;
}

enum rc
cgienv_keep(const struct request *rq, struct buf *out)
{
	const struct param *p;

	for (p = rq->params; p < rq->params + rq->nparams; p++)
		if (!cgienv_is_credential(p->name))
			buf_addf(out, "%s=%s%c", p->name, p->value, '\0');
	return out->rc;
}
