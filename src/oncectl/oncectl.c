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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "conf_text.h"
#include "conf_value.h"
#include "conffile.h"
#include "date.h"
#include "log.h"
#include "run.h"
#include "spool.h"
#include "store_files.h"
#include "oncectl_command.h"
#include "oncectl.h"

/* How long a handler's command waits for a lock of the database (ms). */
#define HANDLER_WAIT 5000

/* Long options without a letter have numbers above all letters. */
enum {
	OPT_JSON = 256,
	OPT_HELP,
	OPT_FILTER, /* + the bit of enum oncectl_option */
};

static const struct option options[] = {
	{ "state", required_argument, NULL, OPT_FILTER + ONCECTL_STATE },
	{ "scope", required_argument, NULL, OPT_FILTER + ONCECTL_SCOPE },
	{ "path", required_argument, NULL, OPT_FILTER + ONCECTL_PATH },
	{ "older", required_argument, NULL, OPT_FILTER + ONCECTL_OLDER },
	{ "downstream", required_argument, NULL,
	    OPT_FILTER + ONCECTL_DOWNSTREAM },
	{ "completed", no_argument, NULL, OPT_FILTER + ONCECTL_COMPLETED },
	{ "not-executed", no_argument, NULL,
	    OPT_FILTER + ONCECTL_NOT_EXECUTED },
	{ "since", required_argument, NULL, OPT_FILTER + ONCECTL_SINCE },
	{ "until", required_argument, NULL, OPT_FILTER + ONCECTL_UNTIL },
	{ "peer", required_argument, NULL, OPT_FILTER + ONCECTL_PEER },
	{ "instance", required_argument, NULL, OPT_FILTER + ONCECTL_INSTANCE },
	{ "by-scope", no_argument, NULL, OPT_FILTER + ONCECTL_BY_SCOPE },
	{ "wait", required_argument, NULL, OPT_FILTER + ONCECTL_WAIT },
	{ "emit", required_argument, NULL, OPT_FILTER + ONCECTL_EMIT },
	{ "response", no_argument, NULL, OPT_FILTER + ONCECTL_RESPONSE },
	{ "output", no_argument, NULL, OPT_FILTER + ONCECTL_OUTPUT },
	{ "docroot", required_argument, NULL, OPT_FILTER + ONCECTL_DOCROOT },
	{ "grant", required_argument, NULL, OPT_FILTER + ONCECTL_GRANT },
	{ "to", required_argument, NULL, OPT_FILTER + ONCECTL_TO },
	{ "yes", no_argument, NULL, OPT_FILTER + ONCECTL_YES },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

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
oncectl_fail(const struct oncectl *ctl, enum rc rc)
{
	struct store_files_bar bar;
	char why[512];

	if (rc == RC_READONLY && !conf_text_is_postgresql(ctl->database) &&
	    !store_files_check(ctl->database, STORE_FILES_WRITE, &bar)) {
		warnx("%s: %s", bar.file, bar.cure);
		return ONCECTL_REFUSED;
	}
	snprintf(why, sizeof(why), "%s", rc_text(rc));
	if (ctl->store != NULL)
		(void)store_why(ctl->store, rc, why, sizeof(why));
	warnx("%s: %s", ctl->database, why);
	return ONCECTL_REFUSED;
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
take_filter(struct oncectl *ctl, unsigned option, char *value)
{
	struct conf_error why;

	ctl->given |= option;
	switch ((enum oncectl_option)option) {
	case ONCECTL_STATE:
		ctl->state = value;
		return true;
	case ONCECTL_SCOPE:
		ctl->scope = value;
		return true;
	case ONCECTL_PATH:
		ctl->path = value;
		return true;
	case ONCECTL_OLDER:
		if (conf_value_duration(value, 1, INT64_MAX, &ctl->older, &why))
			return true;
		warnx("--older: %s", why.text);
		return false;
	case ONCECTL_DOWNSTREAM:
		ctl->downstream = value;
		return true;
	case ONCECTL_WAIT:
		if (conf_value_duration(value, 0, INT64_MAX, &ctl->wait, &why))
			return true;
		warnx("--wait: %s", why.text);
		return false;
	case ONCECTL_EMIT:
		return take_emit(ctl, value);
	case ONCECTL_DOCROOT:
		if (ctl->ndocroots == ONCECTL_DOCROOTS) {
			warnx("--docroot: more than %d", ONCECTL_DOCROOTS);
			return false;
		}
		ctl->docroots[ctl->ndocroots++] = value;
		return true;
	case ONCECTL_GRANT:
		ctl->grant = value;
		return true;
	case ONCECTL_TO:
		ctl->to = value;
		return true;
	case ONCECTL_SINCE:
		return read_time("since", value, &ctl->since);
	case ONCECTL_UNTIL:
		return read_time("until", value, &ctl->until);
	case ONCECTL_PEER:
		ctl->peer = value;
		return true;
	case ONCECTL_INSTANCE:
		ctl->instance = value;
		return true;
	case ONCECTL_COMPLETED:
	case ONCECTL_NOT_EXECUTED:
	case ONCECTL_BY_SCOPE:
	case ONCECTL_RESPONSE:
	case ONCECTL_OUTPUT:
	case ONCECTL_YES:
		return true;
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
	int c, at = -1;

	*help = false;
	/* getopt_long() moves arguments behind the options, in any order of
	 * the command line; "--" ends the options. */
	while ((c = getopt_long(argc, argv, "hVd:f:", options, &at)) != -1) {
		if (at != -1 && !is_whole_name(argv, &options[at]))
			return ONCECTL_USAGE;
		at = -1;
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
		case OPT_HELP:
			*help = true;
			break;
		case '?':
			return refuse_usage();
		default:
			assert(c > OPT_FILTER);
			if (!take_filter(
				ctl, (unsigned)(c - OPT_FILTER), optarg))
				return ONCECTL_USAGE;
		}
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
	if (conf == NULL) {
		warnx("%s", why.text);
		return ONCECTL_REFUSED;
	}
	ctl.conf = conf;
	status = oncectl_run(&ctl, command);
	conf_unref(conf);
	return oncectl_flush(status);
}
