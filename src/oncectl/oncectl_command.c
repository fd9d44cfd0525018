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
	    "Lists keys, one a line.\n"
	    "\n"
	    "  --state S   pending, in_progress, completed, unknown,\n"
	    "              failed_retryable, dead_letter or expired\n"
	    "  --scope S   keys of that caller; \"\": of none\n"
	    "  --path P    keys of that path\n"
	    "  --older D   keys older than D, such as 30s, 24h or 7d\n"
	    "  --peer A    keys whose last client had that address\n"
	    "  --since T, --until T   keys made since then, and before then:\n"
	    "              a time such as 2026-01-31T12:00:00Z, or a duration\n"
	    "              before now such as 24h\n",
	    0, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_SINCE | ONCECTL_UNTIL, oncectl_ls },
	{ "show", KEY_OR_UUID "\n               [--response | --output]",
	    "Prints what is known of one key, or the stored answer, or what\n"
	    "its program printed instead of one.\n"
	    "\n"
	    "  --scope S, --path P   where several keys are named so\n"
	    "  --downstream UUID     the key's ONCE_DOWNSTREAM_KEY\n"
	    "  --instance UUID       the Reference that a client was given,\n"
	    "                        for a run, a replay or a refusal\n"
	    "  --response            the stored answer as a CGI response,\n"
	    "                        as resolve --completed reads it\n"
	    "  --output              the beginning of an answer that was\n"
	    "                        not accepted, and how its program ended\n",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_WHICH | ONCECTL_RESPONSE | ONCECTL_OUTPUT,
	    oncectl_show },
	{ "resolve",
	    KEY_OR_UUID "\n"
	    "               --completed < response | --not-executed\n"
	    "               | --not-executed " MANY " [--yes]",
	    "Says what became of a key that is unknown or dead_letter, or\n"
	    "that nothing happened for all such keys that the options choose.\n"
	    "\n"
	    "  --completed      it happened; standard input has the answer\n"
	    "                   for retries, as a CGI response\n"
	    "  --not-executed   nothing happened; the next request runs\n"
	    "  --scope S, --path P, --downstream UUID, --instance UUID   as\n"
	    "                   for show\n"
	    "  --state S, --scope S, --path P, --older D, --peer A   as for\n"
	    "                   ls; without KEY, --downstream and --instance\n"
	    "                   they choose keys; the command says how many,\n"
	    "                   and asks\n"
	    "  --yes            do not ask\n",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE |
		ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED | ONCECTL_YES,
	    oncectl_resolve },
	{ "forget",
	    KEY_OR_UUID "\n"
	    "               | " MANY " [--yes]",
	    "Deletes a key, or all keys that the options choose, with their\n"
	    "answers.  The next request with such a key is new, and runs.\n"
	    "A key that is in progress is never forgotten.\n"
	    "\n"
	    "  --state S, --scope S, --path P, --older D, --peer A   as for\n"
	    "             ls; without KEY, --downstream and --instance they\n"
	    "             choose keys; the command says how many, and asks\n"
	    "  --yes      do not ask\n",
	    1, ONCECTL_NEEDS_STORE,
	    ONCECTL_MANY | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE | ONCECTL_YES,
	    oncectl_forget },
	{ "backup", "FILE [--yes]",
	    "Copies the whole store into FILE while it is in use.  FILE is\n"
	    "there when it is whole and on disk, and not before.\n"
	    "oncectl(1) says how to restore it, and what it forgets.\n"
	    "\n"
	    "  --yes   replaces FILE if it exists\n",
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
	    "Prints every key and every effect, one JSON object a line.\n"
	    "\n"
	    "  --since T   what changed since then: a time such as\n"
	    "              2026-01-31T12:00:00Z, or a duration such as 24h\n",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_SINCE, oncectl_export },
	{ "stats", "[--by-scope]",
	    "Prints how many keys are in each state, and sizes.\n"
	    "\n"
	    "  --by-scope   the states of each caller's keys, and how often\n"
	    "               it repeated a request\n",
	    0, ONCECTL_NEEDS_STORE, ONCECTL_BY_SCOPE, oncectl_stats },
	{ "doctor", "",
	    "Examines the store; exits with 1 if something needs attention.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_doctor },
	{ "metrics", "",
	    "Prints the gauges that the store knows, for Prometheus.\n",
	    0, ONCECTL_NEEDS_STORE, 0, oncectl_metrics },
	{ "init", "[--grant ROLE]",
	    "Makes the tables in a PostgreSQL database, unless they are\n"
	    "there.\n"
	    "\n"
	    "  --grant ROLE   lets the role of handlers that share the\n"
	    "                 database call their functions, and no more\n",
	    0, ONCECTL_NEEDS_NAME, ONCECTL_GRANT, oncectl_init },
	{ "copy", "--to URI",
	    "Copies all keys and effects of an SQLite database into a\n"
	    "PostgreSQL database that has none, counts and compares them.\n"
	    "No daemon may use the SQLite database meanwhile.\n"
	    "\n"
	    "  --to URI   the PostgreSQL database\n",
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
	    "there is any.  It needs no database.\n"
	    "\n"
	    "  --docroot DIR          the web server's document root\n"
	    "  --docroot PREFIX=DIR   a folder that has the path PREFIX, as\n"
	    "                         in /cgi-bin=/usr/lib/cgi-bin\n",
	    0, ONCECTL_NEEDS_CONFIG, ONCECTL_DOCROOT, oncectl_audit },
	{ "cgi", "SOCKET",
	    "A CGI program that hands its request to oncewrap, for web\n"
	    "servers that speak no FastCGI.  It needs no database.\n"
	    "\n"
	    "  SOCKET   where oncewrap listens: unix:/path, /path or\n"
	    "           tcp:host:port\n",
	    1, ONCECTL_NEEDS_CONFIG, 0, oncectl_cgi },
	{ "checkpoint", "NAME [--emit TOPIC=FILE]... [--wait D]",
	    "For a handler: records how far this attempt is.\n"
	    "\n"
	    "  --emit TOPIC=FILE   puts an effect into the outbox with it\n"
	    "  --wait D            how long to wait for the database (5s)\n",
	    1, ONCECTL_NEEDS_NAME, ONCECTL_WAIT | ONCECTL_EMIT,
	    oncectl_checkpoint },
	{ "emit", "TOPIC [--wait D] < payload",
	    "For a handler: puts an effect into the outbox.\n"
	    "\n"
	    "  --wait D   how long to wait for the database (5s)\n",
	    1, ONCECTL_NEEDS_NAME, ONCECTL_WAIT, oncectl_emit },
	{ "respond", "[--emit TOPIC=FILE]... [--wait D] < response",
	    "For a handler: completes the key with this CGI response.\n"
	    "\n"
	    "  --emit TOPIC=FILE   puts an effect into the outbox with it\n"
	    "  --wait D            how long to wait for the database (5s)\n",
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
	       "\n%s\n%soncectl(1) has the rest.\n",
	    c->name, c->usage[0] != '\0' ? "\n               " : "", c->usage,
	    c->help,
	    c->needs != ONCECTL_NEEDS_CONFIG
		? "The database is that of -d, of -f, or ONCE_DATABASE.  "
		: "");
}
