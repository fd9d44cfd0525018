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
#include "oncectl.h"

/* How long a handler's command waits for a lock of the database (ms). */
#define HANDLER_WAIT 5000

/* What an option's value becomes. */
enum kind { FLAG, TEXT, SPAN, TIME, EMITS, DOCROOTS };

#define FILTER(id, name, kind, member) \
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

#define USAGE                                                      \
	"usage: oncectl [-hV] [-d database | -f config] [--json] " \
	"command [argument ...]\n"

static int
refuse_usage(void)
{
	/* The whole list would hide the error. */
	fputs(USAGE "       oncectl --help lists the commands\n", stderr);
	return ONCECTL_USAGE;
}

/* --- the subcommands ------------------------------------------------------ */

/* The only list of them: --help prints it, and a test compares it with
 * oncectl(1) and with the completion for bash. */

/* What a subcommand needs before it runs. */
enum needs {
	NEEDS_STORE, /* an open store: ctl->store */
	NEEDS_NAME,  /* the database's name: ctl->database */
	NEEDS_CONFIG /* ctl->conf alone */
};

struct command {
	const char *name;
	const char *usage; /* its arguments and options */
	const char *help;  /* what it does */
	int max_args;
	enum needs needs;
	unsigned options; /* those it takes, of enum oncectl_option */
	int (*run)(struct oncectl *);
};

#define KEY_OR_UUID                                        \
	"KEY [--scope S] [--path P] | --downstream UUID\n" \
	"               | --instance UUID"
#define MANY                                               \
	"[--state S] [--scope S] [--path P] [--older D]\n" \
	"               [--peer A]"

/* clang-format off */
static const struct command commands[] = {
	{ "ls", MANY " [--since T] [--until T]",
	    "Lists keys, one a line", 0, NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_SINCE | ONCECTL_UNTIL, oncectl_ls },
	{ "show", KEY_OR_UUID "\n               [--response | --output]",
	    "Prints what is known of a key, or its answer, or its output",
	    1, NEEDS_STORE,
	    ONCECTL_WHICH | ONCECTL_RESPONSE | ONCECTL_OUTPUT, oncectl_show },
	{ "resolve",
	    KEY_OR_UUID "\n"
	    "               --completed < response | --not-executed\n"
	    "               | --not-executed " MANY " [--yes]",
	    "Says what became of a key, or that nothing did of all chosen ones",
	    1, NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE |
		ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED | ONCECTL_YES,
	    oncectl_resolve },
	{ "forget", KEY_OR_UUID "\n               | " MANY " [--yes]",
	    "Deletes a key, or all chosen ones but those in progress",
	    1, NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE | ONCECTL_YES,
	    oncectl_forget },
	{ "backup", "FILE [--yes]",
	    "Copies the whole store into a new FILE while it is in use",
	    1, NEEDS_STORE, ONCECTL_YES, oncectl_backup },
	{ "sweep", "", "Settles what processes that are gone left in progress",
	    0, NEEDS_STORE, 0, oncectl_sweep },
	{ "reap", "",
	    "Deletes the keys past their retention, or makes them expired",
	    0, NEEDS_STORE, 0, oncectl_reap },
	{ "reconcile", "",
	    "Asks the reconcilers of -f about unknown keys that are due",
	    0, NEEDS_STORE, 0, oncectl_reconcile },
	{ "outbox",
	    "ls [--state S] [--scope S] [--path P] | retry ID | drop ID",
	    "Lists the effects, or has one tried now, or deletes one",
	    2, NEEDS_STORE,
	    ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH, oncectl_outbox },
	{ "export", "[--since T]",
	    "Prints every key and every effect, one JSON object a line",
	    0, NEEDS_STORE, ONCECTL_SINCE, oncectl_export },
	{ "stats", "[--by-scope]",
	    "Prints how many keys are in each state, and sizes",
	    0, NEEDS_STORE, ONCECTL_BY_SCOPE, oncectl_stats },
	{ "doctor", "",
	    "Examines the store; exits with 1 if something needs attention",
	    0, NEEDS_STORE, 0, oncectl_doctor },
	{ "metrics", "",
	    "Prints the gauges that the store knows, for Prometheus",
	    0, NEEDS_STORE, 0, oncectl_metrics },
	{ "init", "[--grant ROLE]", "Makes the tables in a PostgreSQL database",
	    0, NEEDS_NAME, ONCECTL_GRANT, oncectl_init },
	{ "copy", "--to URI",
	    "Copies an SQLite database that no daemon uses to PostgreSQL",
	    0, NEEDS_STORE, ONCECTL_TO, oncectl_copy },
	{ "accept-loss", "",
	    "Lets daemons go on that wait because commits are missing",
	    0, NEEDS_STORE, 0, oncectl_accept },
	{ "accept-clock", "",
	    "Says that the clock of the PostgreSQL server is right",
	    0, NEEDS_STORE, 0, oncectl_accept },
	{ "audit", "-f config [--docroot [PREFIX=]DIR]...",
	    "Prints what takes unsafe methods without key = required",
	    0, NEEDS_CONFIG, ONCECTL_DOCROOT, oncectl_audit },
	{ "cgi", "SOCKET",
	    "A CGI program that hands its request to oncewrap's socket",
	    1, NEEDS_CONFIG, 0, oncectl_cgi },
	{ "checkpoint", "NAME [--emit TOPIC=FILE]... [--wait D]",
	    "For a handler: records how far this attempt is",
	    1, NEEDS_NAME, ONCECTL_WAIT | ONCECTL_EMIT,
	    oncectl_handler },
	{ "emit", "TOPIC [--wait D] < payload",
	    "For a handler: puts an effect into the outbox",
	    1, NEEDS_NAME, ONCECTL_WAIT, oncectl_handler },
	{ "respond", "[--emit TOPIC=FILE]... [--wait D] < response",
	    "For a handler: completes the key with this CGI response",
	    0, NEEDS_NAME, ONCECTL_WAIT | ONCECTL_EMIT,
	    oncectl_handler },
};
/* clang-format on */
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void
command_list(void)
{
	fputs(USAGE, stdout);
	for (const struct command *c = commands; c < commands + NCOMMANDS; c++)
		printf("       oncectl %s%s%s\n", c->name,
		    c->usage[0] != '\0' ? " " : "", c->usage);
	fputs("\noncectl COMMAND --help says what a command does; oncectl(1) "
	      "has the rest.\n",
	    stdout);
}

static void
command_help(const struct command *c)
{
	printf("usage: oncectl [-d database | -f config] [--json] %s%s%s\n"
	       "\n%s.\n%soncectl(1) has the rest.\n",
	    c->name, c->usage[0] != '\0' ? "\n               " : "", c->usage,
	    c->help,
	    c->needs != NEEDS_CONFIG
		? "The database is that of -d, of -f, or ONCE_DATABASE.  "
		: "");
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
option_emit(struct oncectl *ctl, char *value)
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
option_docroot(struct oncectl *ctl, const char *value)
{
	if (ctl->ndocroots == ONCECTL_DOCROOTS) {
		warnx("--docroot: more than %d", ONCECTL_DOCROOTS);
		return false;
	}
	ctl->docroots[ctl->ndocroots++] = value;
	return true;
}

static bool
option_filter(struct oncectl *ctl, const struct filter *f, char *value)
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
		return option_emit(ctl, value);
	case DOCROOTS:
		return option_docroot(ctl, value);
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
options_parse(struct oncectl *ctl, int argc, char **argv, bool *help)
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
			if (!option_filter(ctl, &filters[at], optarg))
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
static const struct command *
oncectl_find_command(struct oncectl *ctl)
{
	if (ctl->nargs == 0)
		return NULL;
	for (const struct command *c = commands; c < commands + NCOMMANDS; c++)
		if (strcmp(c->name, ctl->arg[0]) == 0) {
			ctl->command = c->name;
			ctl->arg++;
			ctl->nargs--;
			return c;
		}
	warnx("%s: no such command", ctl->arg[0]);
	return NULL;
}

static bool
oncectl_fits(const struct oncectl *ctl, const struct command *c)
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
print_help(struct oncectl *ctl)
{
	const struct command *command;

	if (ctl->nargs == 0) {
		command_list();
		return ONCECTL_DONE;
	}
	command = oncectl_find_command(ctl);
	if (command == NULL)
		return refuse_usage();
	command_help(command);
	return ONCECTL_DONE;
}

/* --- running it ----------------------------------------------------------- */

/* Runs the command with what it needs, and returns the exit status. */
static int
oncectl_run(struct oncectl *ctl, const struct command *command)
{
	int status;

	if (command->needs == NEEDS_CONFIG)
		return command->run(ctl);
	if (!oncectl_name_database(ctl))
		return ONCECTL_USAGE;
	if (command->needs == NEEDS_NAME)
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
	const struct command *command;
	struct conf *conf;
	struct conf_error why;
	bool helps;
	int status;

	setlocale(LC_CTYPE, "");
	log_set_level(LOG_ERROR);
	status = options_parse(&ctl, argc, argv, &helps);
	if (status != -1)
		return status;
	if (helps)
		return oncectl_flush(print_help(&ctl));
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
