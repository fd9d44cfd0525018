/*
 * oncectl: for operators.  There is one table of subcommands; each gets an
 * open store and returns an exit status.  oncectl never makes a database: a
 * wrong name is an error, not a new and empty store.
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
#include "conf_value.h"
#include "conffile.h"
#include "date.h"
#include "log.h"
#include "run.h"
#include "spool.h"
#include "oncectl.h"

static const struct command {
	const char *name;
	const char *usage; /* its arguments and options */
	int max_args;
	unsigned options; /* the ones it takes, of enum oncectl_option */
	int (*run)(struct oncectl *);
} commands[] = {
	{ "ls", "[--state S] [--scope S] [--path P] [--older D]", 0,
	    ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH | ONCECTL_OLDER,
	    oncectl_ls },
	{ "show", "KEY [--scope S] [--path P] | --downstream UUID", 1,
	    ONCECTL_WHICH, oncectl_show },
	{ "resolve",
	    "KEY [--scope S] [--path P] | --downstream UUID\n"
	    "               --completed < response | --not-executed",
	    1, ONCECTL_WHICH | ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED,
	    oncectl_resolve },
	{ "forget", "KEY [--scope S] [--path P] | --downstream UUID", 1,
	    ONCECTL_WHICH, oncectl_forget },
	{ "sweep", "", 0, 0, oncectl_sweep },
	{ "reap", "", 0, 0, oncectl_reap },
	{ "reconcile", "", 0, 0, oncectl_reconcile },
	{ "outbox",
	    "ls [--state S] [--scope S] [--path P] | retry ID | drop ID", 2,
	    ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH, oncectl_outbox },
	{ "export", "[--since T]", 0, ONCECTL_SINCE, oncectl_export },
	{ "stats", "[--by-scope]", 0, ONCECTL_BY_SCOPE, oncectl_stats },
	{ "doctor", "", 0, 0, oncectl_doctor },
	{ "metrics", "", 0, 0, oncectl_metrics },
	{ "checkpoint", "NAME [--emit TOPIC=FILE]... [--wait D]", 1,
	    ONCECTL_WAIT | ONCECTL_EMIT, oncectl_checkpoint },
	{ "emit", "TOPIC [--wait D] < payload", 1, ONCECTL_WAIT, oncectl_emit },
	{ "respond", "[--emit TOPIC=FILE]... [--wait D] < response", 0,
	    ONCECTL_WAIT | ONCECTL_EMIT, oncectl_respond },
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

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
	{ "by-scope", no_argument, NULL, OPT_FILTER + ONCECTL_BY_SCOPE },
	{ "wait", required_argument, NULL, OPT_FILTER + ONCECTL_WAIT },
	{ "emit", required_argument, NULL, OPT_FILTER + ONCECTL_EMIT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static int
usage(FILE *file)
{
	fputs("usage: oncectl [-hV] [-d database | -f config] [--json] "
	      "command [argument ...]\n",
	    file);
	if (file != stdout) {
		/* The whole list would hide the error. */
		fputs("       oncectl --help lists the commands\n", file);
		return ONCECTL_USAGE;
	}
	for (size_t i = 0; i < NCOMMANDS; i++)
		printf("       oncectl %s%s%s\n", commands[i].name,
		    commands[i].usage[0] != '\0' ? " " : "", commands[i].usage);
	return ONCECTL_DONE;
}

int
oncectl_fail(const struct oncectl *ctl, enum rc rc)
{
	warnx("%s: %s", ctl->database, rc_text(rc));
	return ONCECTL_REFUSED;
}

/* --- the command line -------------------------------------------------- */

/* Reads a time, or a duration before now. */
static bool
take_since(struct oncectl *ctl, const char *value)
{
	struct conf_error why;
	int64_t ago;

	if (date_rfc3339(value, &ctl->since))
		return true;
	if (!conf_value_duration(value, 1, INT64_MAX, &ago, &why)) {
		warnx("--since: %s: neither a time such as "
		      "2026-01-31T12:00:00Z nor a duration",
		    value);
		return false;
	}
	ctl->since = clock_wall() - ago;
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
	case ONCECTL_SINCE:
		return take_since(ctl, value);
	case ONCECTL_COMPLETED:
	case ONCECTL_NOT_EXECUTED:
	case ONCECTL_BY_SCOPE:
		return true;
	}
	assert(!"an option that is in no table");
	return false;
}

/* Returns -1, or the status to exit with at once. */
static int
take_options(struct oncectl *ctl, int argc, char **argv)
{
	int c;

	/* getopt_long() moves arguments behind the options, in any order of
	 * the command line; "--" ends the options. */
	while ((c = getopt_long(argc, argv, "hVd:f:", options, NULL)) != -1) {
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
			return usage(stdout);
		case '?':
			return usage(stderr);
		default:
			assert(c > OPT_FILTER);
			if (!take_filter(
				ctl, (unsigned)(c - OPT_FILTER), optarg))
				return ONCECTL_USAGE;
		}
	}
	ctl->arg = argv + optind;
	ctl->nargs = argc - optind;
	return -1;
}

/* Takes the name of the subcommand off the arguments; NULL: there is no such
 * subcommand. */
static const struct command *
find_command(struct oncectl *ctl)
{
	const struct command *c;

	if (ctl->nargs == 0)
		return NULL;
	for (c = commands; c < commands + NCOMMANDS; c++)
		if (strcmp(c->name, ctl->arg[0]) == 0)
			break;
	if (c == commands + NCOMMANDS) {
		warnx("%s: no such command", ctl->arg[0]);
		return NULL;
	}
	ctl->command = c->name;
	ctl->arg++;
	ctl->nargs--;
	if (ctl->nargs > c->max_args) {
		warnx("%s: too many arguments", c->name);
		return NULL;
	}
	if ((ctl->given & ~c->options) != 0) {
		warnx("%s: takes no such option", c->name);
		return NULL;
	}
	return c;
}

/* --- the store --------------------------------------------------------- */

/* A handler's command needs no more than the database. */
static bool
is_handlers(const struct command *command)
{
	return (command->options & ONCECTL_WAIT) != 0;
}

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
	if (spool_setup(conf->spool_dir, UINT64_MAX) == RC_OK)
		return true;
	warnx("%s", rc_text(RC_NOMEM));
	return false;
}

static bool
open_store(struct oncectl *ctl, const struct conf *conf)
{
	struct store_options so;
	char why[512];

	memset(&so, 0, sizeof(so));
	so.database = ctl->database;
	so.mode = 0600;
	so.durability = conf->durability;
	so.busy_timeout = conf->busy_timeout;
	so.max_wal = conf->max_wal;
	so.create = false;
	if (store_open(&ctl->store, &so, why, sizeof(why)) == RC_OK)
		return true;
	warnx("%s", why);
	return false;
}

int
main(int argc, char **argv)
{
	struct oncectl ctl = { .wait = HANDLER_WAIT };
	const struct command *command;
	struct conf *conf;
	struct conf_error why;
	int status;

	setlocale(LC_CTYPE, "");
	log_set_level(LOG_ERROR);
	status = take_options(&ctl, argc, argv);
	if (status != -1)
		return status;
	command = find_command(&ctl);
	if (command == NULL)
		return usage(stderr);
	if (run_init() != RC_OK) /* for reconcilers */
		return ONCECTL_REFUSED;
	conf = ctl.config != NULL ? conffile_load(ctl.config, &why)
				  : conf_default(&why);
	if (conf == NULL) {
		warnx("%s", why.text);
		return ONCECTL_REFUSED;
	}
	ctl.conf = conf;
	if (!name_database(&ctl, conf))
		status = ONCECTL_USAGE;
	else if (!is_handlers(command) && !open_store(&ctl, conf))
		status = ONCECTL_REFUSED;
	else {
		status = command->run(&ctl);
		store_close(ctl.store);
	}
	conf_unref(conf);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		warn("standard output");
		status = ONCECTL_REFUSED;
	}
	return status;
}
