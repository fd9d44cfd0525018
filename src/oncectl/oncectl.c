/*
 * oncectl: for operators.  The command line, and what a subcommand needs before
 * it runs.  oncectl never makes a database: a wrong name is an error, not a new
 * and empty store.
 */
#include "config.h"

#include <assert.h>
#include <err.h>
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "conf_value.h"
#include "date.h"
#include "log.h"
#include "run.h"
#include "scope.h"
#include "spool.h"
#include "store_files.h"
#include "user.h"
#include "oncectl.h"

/* How long a handler's command waits for a lock of the database (ms). */
#define HANDLER_WAIT 5000

/* What an option's value becomes. */
enum kind { FLAG, TEXT, SPAN, TIME, EMITS, DOCROOTS };

#define FILTER(id, name, value, kind, member, help) \
	{ name, ONCECTL_##id, kind, offsetof(struct oncectl, member) },
static const struct filter {
	const char *name;
	unsigned bit; /* of enum oncectl_option */
	enum kind kind;
	size_t offset; /* in struct oncectl */
} filters[] = { ONCECTL_OPTIONS(FILTER) };
#define NFILTERS ONCECTL_NOPTIONS

/* Long options without a letter have numbers above all letters. */
enum { OPT_JSON = 256, OPT_FILTER };

static int
refuse_usage(void)
{
	/* The whole list would hide the error. */
	fputs("usage: oncectl [-hV] [-d database | -f config] [--json] "
	      "command [argument ...]\n"
	      "       oncectl --help lists the commands\n",
	    stderr);
	return ONCECTL_USAGE;
}

int
oncectl_refuse(int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vwarnx(format, ap);
	va_end(ap);
	return status;
}

int
oncectl_fail(const struct oncectl *ctl, enum rc rc)
{
	struct store_files_bar bar;
	char why[512];

	if (rc == RC_READONLY && !conf_text_is_postgresql(ctl->database) &&
	    !store_files_check(ctl->database, STORE_FILES_WRITE, &bar))
		return oncectl_refuse(
		    ONCECTL_REFUSED, "%s: %s", bar.file, bar.cure);
	snprintf(why, sizeof(why), "%s", rc_text(rc));
	if (ctl->store != NULL)
		(void)store_why(ctl->store, rc, why, sizeof(why));
	return oncectl_refuse(ONCECTL_REFUSED, "%s: %s", ctl->database, why);
}

/* --- the log -------------------------------------------------------------- */

/* The file is opened for each line, because logrotate(8) may have moved it. */

#define SYSLOG "syslog"

/* The words of the operator's page. */
static const char *
result_name(enum rc rc)
{
	if (rc == RC_OK)
		return "done";
	if (rc == RC_LOST)
		return "lost";
	return rc == RC_PENDING ? "pending" : rc_text(rc);
}

static void
hand_over(const struct oncectl *ctl, const struct log_request *about,
    const struct log_value *values, size_t n)
{
	const bool known =
	    ctl->config != NULL && strcmp(ctl->conf->log, "stderr") != 0;
	const char *target = known ? ctl->conf->log : SYSLOG;
	static bool said;
	int error = log_hand(target, "operator", about, values, n);

	if (error == 0 || log_hand(SYSLOG, "operator", about, values, n) == 0)
		return;
	if (!said)
		warnx("the log has no line of this: %s: %s", target,
		    strerror(error));
	said = true;
}

void
oncectl_log(const struct oncectl *ctl, const struct oncectl_act *act)
{
	const char *sudo = getenv("SUDO_USER");
	struct log_request about = { .path = act->path, .key = act->key };
	struct log_value values[5];
	char user[USER_NAME];
	size_t n = 0;

	user_name(getuid(), user);
	values[n++] = LOG_S("user", user);
	if (sudo != NULL && getuid() == 0)
		values[n++] = LOG_S("sudo_user", sudo);
	values[n++] = LOG_S("act", act->act);
	values[n++] = LOG_S("result", result_name(act->rc));
	if (act->more.name != NULL)
		values[n++] = act->more;
	if (act->key != NULL)
		scope_tag(act->scope, about.scope);
	hand_over(ctl, act->key != NULL ? &about : NULL, values, n);
}

/* --- the command line -------------------------------------------------- */

/* Reads a time, or a duration before now. */
static bool
read_time(const char *option, const char *value, int64_t *wall)
{
	struct conf_error why;
	int64_t ago;

	if (date_rfc3339(value, wall))
		return true;
	if (!conf_value_duration(value, 1, INT64_MAX, &ago, &why)) {
		warnx("--%s: %s: neither a time such as "
		      "2026-01-31T12:00:00Z nor a duration",
		    option, value);
		return false;
	}
	*wall = clock_wall() - ago;
	return true;
}

/* Reads TOPIC=FILE.  A topic may be any token, and so has no "=". */
static bool
take_emit(struct oncectl *ctl, char *value)
{
	char *equals = strchr(value, '=');

	if (equals == NULL || equals == value || equals[1] == '\0') {
		warnx("--emit: %s: not a topic, \"=\" and a file", value);
		return false;
	}
	if (ctl->nemits == ONCECTL_EMITS) {
		warnx("--emit: more than %d", ONCECTL_EMITS);
		return false;
	}
	*equals = '\0';
	ctl->emits[ctl->nemits].topic = value;
	ctl->emits[ctl->nemits++].file = equals + 1;
	return true;
}

static bool
take_docroot(struct oncectl *ctl, const char *value)
{
	if (ctl->ndocroots == ONCECTL_DOCROOTS) {
		warnx("--docroot: more than %d", ONCECTL_DOCROOTS);
		return false;
	}
	ctl->docroots[ctl->ndocroots++] = value;
	return true;
}

static bool
take_filter(struct oncectl *ctl, const struct filter *f, char *value)
{
	void *member = (char *)ctl + f->offset;
	struct conf_error why;

	ctl->given |= f->bit;
	switch (f->kind) {
	case FLAG:
		return true;
	case TEXT:
		*(const char **)member = value;
		return true;
	case SPAN:
		if (conf_value_duration(value, f->bit == ONCECTL_WAIT ? 0 : 1,
			INT64_MAX, member, &why))
			return true;
		warnx("--%s: %s", f->name, why.text);
		return false;
	case TIME:
		return read_time(f->name, value, member);
	case EMITS:
		return take_emit(ctl, value);
	case DOCROOTS:
		return take_docroot(ctl, value);
	}
	assert(!"an option that is in no table");
	return false;
}

/*
 * Whether the long option that getopt_long() has found is written in full.  An
 * abbreviation could name another option in a later release, and some of them
 * settle keys.
 */
static bool
is_whole_name(char **argv, const struct option *found)
{
	const char *word = argv[optind - 1];

	if (found->has_arg == required_argument && optarg == word)
		word = argv[optind - 2];
	word += 2; /* "--" */
	if (strcspn(word, "=") == strlen(found->name))
		return true;
	warnx("--%.*s: write it in full: --%s", (int)strcspn(word, "="), word,
	    found->name);
	return false;
}

/* Returns -1, or the status to exit with at once; *help: -h was given. */
static int
take_options(struct oncectl *ctl, int argc, char **argv, bool *help)
{
	struct option options[NFILTERS + 3] = {
		[NFILTERS] = { "json", no_argument, NULL, OPT_JSON },
		[NFILTERS + 1] = { "help", no_argument, NULL, 'h' },
	};
	int c, at = -1;

	for (size_t i = 0; i < NFILTERS; i++)
		options[i] = (struct option){ filters[i].name,
			filters[i].kind != FLAG ? required_argument
						: no_argument,
			NULL, OPT_FILTER };
	*help = false;
	/* getopt_long() moves arguments behind the options, in any order of
	 * the command line; "--" ends the options. */
	while ((c = getopt_long(argc, argv, "hVd:f:", options, &at)) != -1) {
		if (at != -1 && !is_whole_name(argv, &options[at]))
			return ONCECTL_USAGE;
		switch (c) {
		case 'V':
			puts(PACKAGE_STRING);
			return ONCECTL_DONE;
		case 'd':
			ctl->database = optarg;
			break;
		case 'f':
			ctl->config = optarg;
			break;
		case OPT_JSON:
			ctl->json = true;
			break;
		case 'h':
			*help = true;
			break;
		case '?':
			return refuse_usage();
		default:
			assert(c == OPT_FILTER);
			if (!take_filter(ctl, &filters[at], optarg))
				return ONCECTL_USAGE;
		}
		at = -1;
	}
	ctl->arg = argv + optind;
	ctl->nargs = argc - optind;
	if (ctl->nargs > 0 && strcmp(ctl->arg[0], "help") == 0) {
		*help = true;
		ctl->arg++;
		ctl->nargs--;
	}
	return -1;
}

/* Takes the name of the subcommand off the arguments; NULL: there is no such
 * subcommand. */
static const struct oncectl_command *
oncectl_find_command(struct oncectl *ctl)
{
	const struct oncectl_command *c;

	if (ctl->nargs == 0)
		return NULL;
	c = oncectl_command_find(ctl->arg[0]);
	if (c == NULL) {
		warnx("%s: no such command", ctl->arg[0]);
		return NULL;
	}
	ctl->command = c->name;
	ctl->arg++;
	ctl->nargs--;
	return c;
}

static bool
oncectl_fits(const struct oncectl *ctl, const struct oncectl_command *c)
{
	if (ctl->nargs > c->max_args) {
		warnx("%s: too many arguments", c->name);
		return false;
	}
	if ((ctl->given & ~c->options) != 0) {
		warnx("%s: takes no such option", c->name);
		return false;
	}
	return true;
}

/* Prints the help for the command that the arguments name, or the list. */
static int
help(struct oncectl *ctl)
{
	const struct oncectl_command *command;

	if (ctl->nargs == 0) {
		oncectl_command_list();
		return ONCECTL_DONE;
	}
	command = oncectl_find_command(ctl);
	if (command == NULL)
		return refuse_usage();
	oncectl_command_help(command);
	return ONCECTL_DONE;
}

/* --- the store --------------------------------------------------------- */

/* Names the database: by -d, by the configuration, or by ONCE_DATABASE. */
static bool
name_database(struct oncectl *ctl, const struct conf *conf)
{
	const char *environment = getenv("ONCE_DATABASE");

	if (ctl->database == NULL && ctl->config != NULL)
		ctl->database = conf->database;
	else if (ctl->database == NULL)
		ctl->database = environment;
	if (ctl->database == NULL || ctl->database[0] == '\0') {
		warnx("no database is named: -d, -f or ONCE_DATABASE");
		return false;
	}
	if (conf_text_is_nearly_postgresql(ctl->database)) {
		warnx("a PostgreSQL database is named by a URI, which begins "
		      "with postgresql://");
		return false;
	}
	if (spool_setup(conf->spool_dir, UINT64_MAX) == RC_OK)
		return true;
	warnx("%s", rc_text(RC_NOMEM));
	return false;
}

void
oncectl_store_options(const struct oncectl *ctl, struct store_options *so)
{
	const struct conf *conf = ctl->conf;

	memset(so, 0, sizeof(*so));
	so->database = ctl->database;
	so->mode = 0600;
	so->durability = conf->durability;
	so->busy_timeout = conf->busy_timeout;
	so->owner_timeout = conf->owner_timeout;
	so->max_wal = conf->max_wal;
}

static bool
oncectl_open_store(struct oncectl *ctl)
{
	struct store_options so;
	char why[512];

	oncectl_store_options(ctl, &so);
	if (store_open(&ctl->store, &so, why, sizeof(why)) == RC_OK) {
		/* Messages show it, without a password. */
		if (conf_text_is_postgresql(ctl->database))
			ctl->database = store_database(ctl->store);
		return true;
	}
	warnx("%s", why);
	return false;
}

/* Runs the command with what it needs, and returns the exit status. */
static int
oncectl_run(struct oncectl *ctl, const struct oncectl_command *command)
{
	int status;

	if (command->needs == ONCECTL_NEEDS_CONFIG)
		return command->run(ctl);
	if (!name_database(ctl, ctl->conf))
		return ONCECTL_USAGE;
	if (command->needs == ONCECTL_NEEDS_NAME)
		return command->run(ctl);
	if (!oncectl_open_store(ctl))
		return ONCECTL_REFUSED;
	status = command->run(ctl);
	store_close(ctl->store);
	return status;
}

static int
oncectl_flush(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	warn("standard output");
	return ONCECTL_REFUSED;
}

int
main(int argc, char **argv)
{
	struct oncectl ctl = { .wait = HANDLER_WAIT };
	const struct oncectl_command *command;
	struct conf *conf;
	struct conf_error why;
	bool helps;
	int status;

	setlocale(LC_CTYPE, "");
	log_set_level(LOG_ERROR);
	status = take_options(&ctl, argc, argv, &helps);
	if (status != -1)
		return status;
	if (helps)
		return oncectl_flush(help(&ctl));
	command = oncectl_find_command(&ctl);
	if (command == NULL || !oncectl_fits(&ctl, command))
		return refuse_usage();
	if (run_init() != RC_OK) /* for reconcilers */
		return ONCECTL_REFUSED;
	conf = ctl.config != NULL ? conffile_load(ctl.config, &why)
				  : conf_default(&why);
	if (conf == NULL)
		return oncectl_refuse(ONCECTL_REFUSED, "%s", why.text);
	ctl.conf = conf;
	status = oncectl_run(&ctl, command);
	conf_unref(conf);
	return oncectl_flush(status);
}
