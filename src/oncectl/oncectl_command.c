/*
 * The table of subcommands.  It is the only list of them: --help prints it, and
 * a lint compares it with oncectl(1) and with the completion for bash.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "oncectl.h"

#define KEY_OR_UUID                                        \
	"KEY [--scope S] [--path P] | --downstream UUID\n" \
	"               | --instance UUID"
#define MANY                                               \
	"[--state S] [--scope S] [--path P] [--older D]\n" \
	"               [--peer A]"

/* clang-format off */
static const struct oncectl_command commands[] = {
	{ "ls", MANY " [--since T] [--until T]",
	    "Lists keys, one a line", 0, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_SINCE | ONCECTL_UNTIL, oncectl_ls },
	{ "show", KEY_OR_UUID "\n               [--response | --output]",
	    "Prints what is known of a key, or its answer, or its output",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_WHICH | ONCECTL_RESPONSE | ONCECTL_OUTPUT, oncectl_show },
	{ "resolve",
	    KEY_OR_UUID "\n"
	    "               --completed < response | --not-executed\n"
	    "               | --not-executed " MANY " [--yes]",
	    "Says what became of a key, or that nothing did of all chosen ones",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE |
		ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED | ONCECTL_YES,
	    oncectl_resolve },
	{ "forget", KEY_OR_UUID "\n               | " MANY " [--yes]",
	    "Deletes a key, or all chosen ones but those in progress",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE | ONCECTL_YES,
	    oncectl_forget },
	{ "backup", "FILE [--yes]",
	    "Copies the whole store into a new FILE while it is in use",
	    1, ONCECTL_NEEDS_STORE, ONCECTL_YES, oncectl_backup },
	{ "sweep", "", "Settles what processes that are gone left in progress",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_sweep },
	{ "reap", "",
	    "Deletes the keys past their retention, or makes them expired",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_reap },
	{ "reconcile", "",
	    "Asks the reconcilers that -f names about unknown keys that are due",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_reconcile },
	{ "outbox", "ls [--state S] [--scope S] [--path P] | retry ID | drop ID",
	    "Lists the effects, or has one tried now, or deletes one",
	    2, ONCECTL_NEEDS_STORE,
	    ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH, oncectl_outbox },
	{ "export", "[--since T]",
	    "Prints every key and every effect, one JSON object a line",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_SINCE, oncectl_export },
	{ "stats", "[--by-scope]",
	    "Prints how many keys are in each state, and sizes",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_BY_SCOPE, oncectl_stats },
	{ "doctor", "",
	    "Examines the store; exits with 1 if something needs attention",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_doctor },
	{ "metrics", "",
	    "Prints the gauges that the store knows, for Prometheus",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_metrics },
	{ "init", "[--grant ROLE]", "Makes the tables in a PostgreSQL database",
	    0, ONCECTL_NEEDS_NAME, ONCECTL_GRANT, oncectl_init },
	{ "copy", "--to URI",
	    "Copies an SQLite database that no daemon uses to PostgreSQL",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_TO, oncectl_copy },
	{ "accept-loss", "",
	    "Lets daemons go on that have found that the database lacks commits",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_accept_loss },
	{ "accept-clock", "",
	    "Says that the clock of the PostgreSQL server is right",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_accept_clock },
	{ "audit", "-f config [--docroot [PREFIX=]DIR]...",
	    "Prints what takes unsafe methods without key = required",
	    0, ONCECTL_NEEDS_CONFIG, ONCECTL_DOCROOT, oncectl_audit },
	{ "cgi", "SOCKET",
	    "A CGI program that hands its request to oncewrap's socket",
	    1, ONCECTL_NEEDS_CONFIG, 0, oncectl_cgi },
	{ "checkpoint", "NAME [--emit TOPIC=FILE]... [--wait D]",
	    "For a handler: records how far this attempt is",
	    1, ONCECTL_NEEDS_NAME, ONCECTL_WAIT | ONCECTL_EMIT,
	    oncectl_checkpoint },
	{ "emit", "TOPIC [--wait D] < payload",
	    "For a handler: puts an effect into the outbox",
	    1, ONCECTL_NEEDS_NAME, ONCECTL_WAIT, oncectl_emit },
	{ "respond", "[--emit TOPIC=FILE]... [--wait D] < response",
	    "For a handler: completes the key with this CGI response",
	    0, ONCECTL_NEEDS_NAME, ONCECTL_WAIT | ONCECTL_EMIT,
	    oncectl_respond },
};
/* clang-format on */
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct oncectl_command *
oncectl_command_find(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

void
oncectl_command_list(void)
{
	fputs("usage: oncectl [-hV] [-d database | -f config] [--json] "
	      "command [argument ...]\n",
	    stdout);
	for (const struct oncectl_command *c = commands;
	     c < commands + NCOMMANDS; c++)
		printf("       oncectl %s%s%s\n", c->name,
		    c->usage[0] != '\0' ? " " : "", c->usage);
	fputs("\noncectl COMMAND --help says what a command does; oncectl(1) "
	      "has the rest.\n",
	    stdout);
}

void
oncectl_command_help(const struct oncectl_command *c)
{
	printf("usage: oncectl [-d database | -f config] [--json] %s%s%s\n"
	       "\n%s.\n%soncectl(1) has the rest.\n",
	    c->name, c->usage[0] != '\0' ? "\n               " : "", c->usage,
	    c->help,
	    c->needs != ONCECTL_NEEDS_CONFIG
		? "The database is that of -d, of -f, or ONCE_DATABASE.  "
		: "");
}
