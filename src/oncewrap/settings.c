/*
 * Reads the flags and the file, checks that the users and groups in them exist,
 * and puts a new configuration in the place of the old one.
 */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acceptor.h"
#include "conf_option.h"
#include "log.h"
#include "metrics.h"
#include "mux.h"
#include "outbox.h"
#include "spool.h"
#include "user.h"
#include "workers.h"
#include "settings.h"

/* Exit status, see oncewrap(8). */
#define EXIT_USAGE 2

int
settings_usage(FILE *file)
{
	fputs("usage: oncewrap [-htV] [-f config] [-s socket] [-d database]\n"
	      "                [-w workers] [-- handler [arg ...]]\n",
	    file);
	return file == stdout ? EXIT_SUCCESS : EXIT_USAGE;
}

bool
settings_parse(int argc, char **argv, struct settings *opt, int *status)
{
	static const struct option help[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	memset(opt, 0, sizeof(*opt));
	while (
	    (c = getopt_long(argc, argv, "+Vd:f:hs:tw:", help, NULL)) != -1) {
		switch (c) {
		case 'V':
			puts(PACKAGE_STRING);
			*status = EXIT_SUCCESS;
			return false;
		case 'd':
			opt->database = optarg;
			break;
		case 'f':
			opt->file = optarg;
			break;
		case 'h':
			*status = settings_usage(stdout);
			return false;
		case 's':
			opt->socket = optarg;
			break;
		case 't':
			opt->test = true;
			break;
		case 'w':
			opt->workers = optarg;
			break;
		default:
			*status = settings_usage(stderr);
			return false;
		}
	}
	if (optind < argc) {
		/* A handler must follow "--", so that a stray word is not taken
		 * for one. */
		if (strcmp(argv[optind - 1], "--") != 0) {
			fprintf(stderr,
			    "oncewrap: %s: unexpected argument; -f names a "
			    "configuration, -- a handler\n",
			    argv[optind]);
			*status = settings_usage(stderr);
			return false;
		}
		opt->handler = argv + optind;
	}
	return true;
}

/* --- configuration ------------------------------------------------------ */

static bool
settings_fail(const struct conf *conf, conf_line line, const char *option,
    const char *text, struct conf_error *err)
{
	if (line == 0)
		snprintf(err->text, sizeof(err->text), "%.160s: %s: %s",
		    conf->file != NULL ? conf->file : "oncewrap", option, text);
	else
		snprintf(err->text, sizeof(err->text), "%.160s:%u: %s: %s",
		    conf->file, line, option, text);
	return false;
}

static bool
fail_server(const struct conf *conf, const char *option, const char *text,
    struct conf_error *err)
{
	return settings_fail(
	    conf, conf_line_of_server(conf, option), option, text, err);
}

/* Finds the user and the group that a program runs as; NULL: the daemon's
 * own. */
static bool
check_account(const struct conf *conf, const struct conf_program *program,
    conf_line user_line, conf_line group_line, struct conf_error *err)
{
	struct user user;
	char text[256];

	/* Together: a user without an account needs the group. */
	if (user_find(program->user, program->group, &user, text, sizeof(text)))
		return true;
	return strncmp(text, "no such group", strlen("no such group")) == 0
	    ? settings_fail(conf, group_line, "group", text, err)
	    : settings_fail(conf, user_line, "user", text, err);
}

/* Asks the system whether users and groups exist. */
static bool
check_users(const struct conf *conf, struct conf_error *err)
{
	const struct conf_route *route;
	const struct conf_effect *effect;
	struct user user;
	char text[256];
	size_t i;

	for (i = 0; i <= conf->nroutes; i++) {
		route = i < conf->nroutes ? &conf->routes[i] : &conf->defaults;
		if (!check_account(conf, &route->handler,
			conf_line_of_route(conf, route, "user"),
			conf_line_of_route(conf, route, "group"), err))
			return false;
	}
	for (i = 0; i < conf->neffects; i++) {
		effect = &conf->effects[i];
		if (!check_account(conf, &effect->program,
			conf_line_of_effect(effect, "user"),
			conf_line_of_effect(effect, "group"), err))
			return false;
	}
	/* A number need not be in the user database. */
	if (conf->socket_user != NULL &&
	    conf->socket_user[strspn(conf->socket_user, "0123456789")] !=
		'\0' &&
	    !user_find(conf->socket_user, NULL, &user, text, sizeof(text)))
		return fail_server(conf, "socket_user", text, err);
	if (!user_find(NULL, conf->socket_group, &user, text, sizeof(text)))
		return fail_server(conf, "socket_group", text, err);
	return true;
}

static bool
check_peers(const struct conf *conf, struct conf_error *err)
{
	struct peers peers;
	const char *unknown;
	char text[256];

	acceptor_find_peers(&conf->allow_peers, &peers, &unknown);
	acceptor_free_peers(&peers);
	if (unknown == NULL)
		return true;
	snprintf(text, sizeof(text), "no such user: %s", unknown);
	return fail_server(conf, "allow_peers", text, err);
}

/* Sets the options that are given as flags. */
static bool
set_flags(struct conf *conf, const struct settings *opt, struct conf_error *err)
{
	const struct flag {
		const char *flag, *option, *value;
	} flags[] = {
		{ "-s", "socket", opt->socket },
		{ "-d", "database", opt->database },
		{ "-w", "workers", opt->workers },
	};
	struct conf_error why;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (flags[i].value == NULL ||
		    conf_set(conf, flags[i].option, flags[i].value, &why))
			continue;
		/* The message begins with the name of the option. */
		snprintf(err->text, sizeof(err->text), "oncewrap: %s%.480s",
		    flags[i].flag, why.text + strlen(flags[i].option));
		return false;
	}
	if (opt->handler == NULL || conf_set_handler(conf, opt->handler, &why))
		return true;
	snprintf(err->text, sizeof(err->text), "oncewrap: --%.480s",
	    why.text + strlen("handler"));
	return false;
}

struct conf *
settings_load(const struct settings *opt, struct conf_error *err)
{
	struct conf *conf;

	conf = opt->file != NULL ? conffile_load(opt->file, err)
				 : conf_default(err);
	if (conf == NULL)
		return NULL;
	if (!set_flags(conf, opt, err) || !conf_check(conf, err) ||
	    !check_users(conf, err) || !check_peers(conf, err)) {
		conf_unref(conf);
		return NULL;
	}
	for (size_t i = 0; i < conf->nroutes; i++)
		conf->routes[i].metrics = metrics_route(conf->routes[i].path);
	return conf;
}

void
settings_log_started(const struct store *store, const struct conf *conf)
{
	const char *folder = store_folder(store);
	const struct log_value values[] = { LOG_S("version", PACKAGE_VERSION),
		LOG_S("database", store_database(store)),
		LOG_S("socket",
		    conf->socket != NULL ? conf->socket : "inherited"),
		LOG_I("workers", conf->workers), LOG_S("folder", folder) };

	log_values(LOG_INFO, "started", NULL, values, folder != NULL ? 5 : 4);
}

/* --- a reload ------------------------------------------------------------ */

/*
 * What may fail comes first: users are looked up, memory and files are had, and
 * then the store is written.  All of it can be taken back without fail, but for
 * the store, where the topics are put back as well as that goes.  The loop
 * comes last, because then requests begin that need the others.
 */

void
settings_reopen_log(const char *target)
{
	int error = log_open(target);

	if (error != 0)
		log_event(LOG_ERROR, "log-not-opened", NULL,
		    LOG_S("file", target), LOG_S("error", strerror(error)));
}

void
settings_warn_of_start(const struct conf *start, const struct conf *now)
{
	struct buf names;

	buf_init(&names, 1024);
	conf_option_at_start(start, now, &names);
	if (names.len > 0 && buf_addc(&names, '\0') == RC_OK)
		log_event(LOG_WARN, "reload", NULL,
		    LOG_S("options", (const char *)names.data),
		    LOG_S(
			"note", "changed, and take effect at the next start"));
	buf_free(&names);
}

/* The store, and the processes that stay. */
static enum rc
reload_store(struct store *store, const struct conf *old, struct conf *new,
    struct workers_pool **pools)
{
	enum rc rc;

	if ((rc = outbox_topics(store, old, new)) != RC_OK)
		return rc;
	if (workers_prepare(new, pools))
		return RC_OK;
	(void)outbox_topics(store, new, old);
	return RC_NOMEM;
}

bool
settings_reload(struct store *store, struct serve *serve,
    const struct conf *old, struct conf *new, struct conf_error *err)
{
	const bool log = strcmp(old->log, new->log) != 0;
	struct workers_pool *pools = NULL;
	struct peers peers;
	int error;
	enum rc rc;

	if (log && (error = log_open(new->log)) != 0) {
		(void)snprintf(err->text, sizeof(err->text), "log %.300s: %s",
		    new->log, strerror(error));
		return false;
	}
	rc = mux_peers(new, &peers);
	if (rc == RC_OK)
		rc = spool_setup(new->spool_dir, new->spool_total);
	if (rc == RC_OK)
		rc = reload_store(store, old, new, &pools);
	if (rc != RC_OK) {
		acceptor_free_peers(&peers);
		(void)spool_setup(old->spool_dir, old->spool_total);
		if (log)
			settings_reopen_log(old->log);
		(void)snprintf(err->text, sizeof(err->text), "%s", rc_text(rc));
		return false;
	}
	if (conf_shares_database(new))
		store_share_files(store);
	serve_reload(serve, new, &peers, pools);
	return true;
}
