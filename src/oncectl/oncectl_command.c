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
	    "Lists keys, one a line.  States are pending, in_progress,\n"
	    "completed, unknown, failed_retryable, dead_letter and expired.\n"
	    "A time is that when a key was made.\n",
	    0, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_SINCE | ONCECTL_UNTIL, oncectl_ls },
	{ "show", KEY_OR_UUID "\n               [--response | --output]",
	    "Prints what is known of one key, or the stored answer, or what\n"
	    "its program printed instead of one.\n",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_WHICH | ONCECTL_RESPONSE | ONCECTL_OUTPUT,
	    oncectl_show },
	{ "resolve",
	    KEY_OR_UUID "\n"
	    "               --completed < response | --not-executed\n"
	    "               | --not-executed " MANY " [--yes]",
	    "Says what became of a key that is unknown or dead_letter, or\n"
	    "that nothing happened for all such keys that the options choose:\n"
	    "then the command says how many, and asks.\n",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE |
		ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED | ONCECTL_YES,
	    oncectl_resolve },
	{ "forget",
	    KEY_OR_UUID "\n"
	    "               | " MANY " [--yes]",
	    "Deletes a key, or all keys that the options choose, with their\n"
	    "answers; of several it says how many, and asks.  The next\n"
	    "request with such a key is new, and runs.\n"
	    "A key that is in progress is never forgotten.\n",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE | ONCECTL_YES,
	    oncectl_forget },
	{ "backup", "FILE [--yes]",
	    "Copies the whole store into FILE while it is in use.  FILE is\n"
	    "there when it is whole and on disk, and not before.\n"
	    "With --yes it replaces a FILE that exists.  oncectl(1) says how\n"
	    "to restore it, and what it forgets.\n",
	    1, ONCECTL_NEEDS_STORE, ONCECTL_YES, oncectl_backup },
	{ "sweep", "",
	    "Settles what processes that are gone left in progress.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_sweep },
	{ "reap", "",
	    "Deletes the keys past their retention, or makes them expired.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_reap },
	{ "reconcile", "",
	    "Asks the reconcilers about the unknown keys that are due.  It\n"
	    "needs a configuration (-f), which names them.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_reconcile },
	{ "outbox",
	    "ls [--state S] [--scope S] [--path P] | retry ID | drop ID",
	    "  ls         lists the effects of the outbox; --state is\n"
	    "             pending, delivered or dead_letter\n"
	    "  retry ID   has an effect tried now\n"
	    "  drop ID    deletes an effect: it is never delivered\n",
	    2, ONCECTL_NEEDS_STORE,
	    ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH, oncectl_outbox },
	{ "export", "[--since T]",
	    "Prints every key and every effect, one JSON object a line, or\n"
	    "with --since what changed since then.\n",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_SINCE, oncectl_export },
	{ "stats", "[--by-scope]",
	    "Prints how many keys are in each state, and sizes.\n",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_BY_SCOPE, oncectl_stats },
	{ "doctor", "",
	    "Examines the store; exits with 1 if something needs attention.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_doctor },
	{ "metrics", "",
	    "Prints the gauges that the store knows, for Prometheus.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_metrics },
	{ "init", "[--grant ROLE]",
	    "Makes the tables in a PostgreSQL database, unless they are\n"
	    "there.\n",
	    0, ONCECTL_NEEDS_NAME, ONCECTL_GRANT, oncectl_init },
	{ "copy", "--to URI",
	    "Copies all keys and effects of an SQLite database into a\n"
	    "PostgreSQL database that has none, counts and compares them.\n"
	    "No daemon may use the SQLite database meanwhile.\n",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_TO, oncectl_copy },
	{ "accept-loss", "",
	    "Lets daemons go on that have found that the PostgreSQL\n"
	    "database lacks commits: store-went-back.  oncectl(1) says\n"
	    "what to look at before.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_accept_loss },
	{ "accept-clock", "",
	    "Says that the clock of the PostgreSQL server is right, although\n"
	    "it has jumped ahead: store-clock-held.  What is past its\n"
	    "retention by that clock is deleted then.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_accept_clock },
	{ "audit", "-f config [--docroot [PREFIX=]DIR]...",
	    "Prints every route, and every CGI program under DIR, that\n"
	    "takes unsafe methods without key = required; exits with 1 if\n"
	    "there is any.  It needs no database.\n",
	    0, ONCECTL_NEEDS_CONFIG, ONCECTL_DOCROOT, oncectl_audit },
	{ "cgi", "SOCKET",
	    "A CGI program that hands its request to oncewrap, for web\n"
	    "servers that speak no FastCGI.  SOCKET is where oncewrap\n"
	    "listens: unix:/path, /path or tcp:host:port.  It needs no\n"
	    "database.\n",
	    1, ONCECTL_NEEDS_CONFIG, 0, oncectl_cgi },
	{ "checkpoint", "NAME [--emit TOPIC=FILE]... [--wait D]",
	    "For a handler: records how far this attempt is.\n",
	    1, ONCECTL_NEEDS_NAME, ONCECTL_WAIT | ONCECTL_EMIT,
	    oncectl_checkpoint },
	{ "emit", "TOPIC [--wait D] < payload",
	    "For a handler: puts an effect into the outbox.\n",
	    1, ONCECTL_NEEDS_NAME, ONCECTL_WAIT, oncectl_emit },
	{ "respond", "[--emit TOPIC=FILE]... [--wait D] < response",
	    "For a handler: completes the key with this CGI response.\n",
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

/* Prints the help for an option, its lines below each other. */
static void
option_help(const char *name, const char *value, const char *help)
{
	char label[32];
	size_t n;

	(void)snprintf(label, sizeof(label), "--%s %s", name, value);
	for (; *help != '\0'; help += n + (help[n] == '\n')) {
		n = strcspn(help, "\n");
		printf("  %-20s%.*s\n", label, (int)n, help);
		label[0] = '\0';
	}
}

void
oncectl_command_help(const struct oncectl_command *c)
{
#define HELP(id, name, value, kind, member, help) { name, value, help },
	static const struct {
		const char *name, *value, *help;
	} options[] = { ONCECTL_OPTIONS(HELP) };
#undef HELP

	printf("usage: oncectl [-d database | -f config] [--json] %s%s%s\n"
	       "\n%s\n",
	    c->name, c->usage[0] != '\0' ? "\n               " : "", c->usage,
	    c->help);
	for (size_t i = 0; i < ONCECTL_NOPTIONS; i++)
		if ((c->options & 1U << i) != 0)
			option_help(
			    options[i].name, options[i].value, options[i].help);
	printf("%s%soncectl(1) has the rest.\n", c->options != 0 ? "\n" : "",
	    c->needs != ONCECTL_NEEDS_CONFIG
		? "The database is that of -d, of -f, or ONCE_DATABASE.  "
		: "");
}
