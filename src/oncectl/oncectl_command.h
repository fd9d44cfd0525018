/*
 * The table of subcommands, and their help.
 */
#ifndef ONCECTL_COMMAND_H
#define ONCECTL_COMMAND_H

#include "oncectl.h"

/* What a subcommand needs before it runs. */
enum oncectl_needs {
	ONCECTL_NEEDS_STORE, /* an open store: ctl->store */
	ONCECTL_NEEDS_NAME,  /* the database's name: ctl->database */
	ONCECTL_NEEDS_CONFIG /* ctl->conf alone */
};

struct oncectl_command {
	const char *name;
	const char *usage; /* its arguments and options */
	const char *help;  /* what it does, in lines that end in \n */
	int max_args;
	enum oncectl_needs needs;
	unsigned options; /* those it takes, of enum oncectl_option */
	int (*run)(struct oncectl *);
};

/* NULL: there is no such subcommand. */
const struct oncectl_command *oncectl_command_find(const char *name);

/* Print on stdout: the usage of all subcommands, or the help for one. */
void oncectl_command_list(void);
void oncectl_command_help(const struct oncectl_command *c);

#endif
