/*
 * Shared by the files of oncectl: the command line, and the subcommands.
 */
#ifndef ONCECTL_H
#define ONCECTL_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "store_operator.h"

/* Exit statuses. */
#define ONCECTL_DONE    0
#define ONCECTL_REFUSED 1 /* not found, refused, or failed */
#define ONCECTL_USAGE   2
#define ONCECTL_AGAIN   75 /* EX_TEMPFAIL: nothing done, may be tried again */

/* Options besides -d, -f and --json, as bits. */
enum oncectl_option {
	ONCECTL_STATE = 1,
	ONCECTL_SCOPE = 2,
	ONCECTL_PATH = 4,
	ONCECTL_OLDER = 8,
	ONCECTL_DOWNSTREAM = 16,
	ONCECTL_COMPLETED = 32,
	ONCECTL_NOT_EXECUTED = 64,
	ONCECTL_SINCE = 128,
	ONCECTL_BY_SCOPE = 256,
	ONCECTL_WAIT = 512,
	ONCECTL_EMIT = 1024,
	ONCECTL_RESPONSE = 2048,
	ONCECTL_YES = 4096,
	ONCECTL_DOCROOT = 8192,
	ONCECTL_OUTPUT = 16384,
	ONCECTL_GRANT = 32768,
	ONCECTL_TO = 65536,
	ONCECTL_UNTIL = 131072,
	ONCECTL_PEER = 262144,
	ONCECTL_INSTANCE = 524288
};

/* The most --emit options of a command line. */
#define ONCECTL_EMITS 16

/* The most --docroot options of a command line. */
#define ONCECTL_DOCROOTS 16

/* The options that, besides its name, say which key is meant. */
#define ONCECTL_WHICH \
	(ONCECTL_SCOPE | ONCECTL_PATH | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE)

struct oncectl {
	const char *database; /* -d */
	const char *config;   /* -f */
	bool json;            /* --json */
	const char *state;    /* --state, of a key or an effect; NULL: any */
	const char *scope, *path;
	int64_t older;          /* --older (ms); 0: any */
	int64_t since, until;   /* of the wall clock (ms); 0: any */
	const char *peer;       /* --peer, NULL: any */
	const char *downstream; /* --downstream */
	const char *instance;   /* --instance */
	int64_t wait;           /* --wait (ms) */
	struct {
		const char *topic, *file;
	} emits[ONCECTL_EMITS]; /* --emit */
	size_t nemits;
	const char *docroots[ONCECTL_DOCROOTS]; /* --docroot */
	size_t ndocroots;
	const char *grant;   /* --grant; NULL: none */
	const char *to;      /* --to; NULL: none */
	unsigned given;      /* bits of enum oncectl_option */
	const char *command; /* the subcommand's name */
	char **arg;          /* its arguments */
	int nargs;
	/* while a subcommand runs */
	struct store *store;
	const struct conf *conf; /* of -f, or the defaults */
};

/* Subcommands; each returns an exit status. */
int oncectl_ls(struct oncectl *ctl);
int oncectl_show(struct oncectl *ctl);
int oncectl_export(struct oncectl *ctl);
int oncectl_resolve(struct oncectl *ctl);
int oncectl_forget(struct oncectl *ctl);
int oncectl_audit(struct oncectl *ctl);
int oncectl_backup(struct oncectl *ctl);
int oncectl_sweep(struct oncectl *ctl);
int oncectl_reap(struct oncectl *ctl);
int oncectl_reconcile(struct oncectl *ctl);
int oncectl_stats(struct oncectl *ctl);
int oncectl_doctor(struct oncectl *ctl);
int oncectl_metrics(struct oncectl *ctl);
int oncectl_outbox(struct oncectl *ctl);
int oncectl_init(struct oncectl *ctl);
int oncectl_copy(struct oncectl *ctl);
int oncectl_accept_loss(struct oncectl *ctl);
int oncectl_accept_clock(struct oncectl *ctl);

/* How to open ctl->database, not to be created. */
void
oncectl_store_options(const struct oncectl *ctl, struct store_options *options);

/* Fills in the filter for the options that choose keys; false, with a message:
 * there is no such state. */
bool oncectl_filter(const struct oncectl *ctl, struct store_filter *filter);

/* Prints the effects that --since lets through, as export does. */
enum rc oncectl_outbox_export(struct oncectl *ctl);

/* Subcommands for handlers; they open no store. */
int oncectl_checkpoint(struct oncectl *ctl);
int oncectl_emit(struct oncectl *ctl);
int oncectl_respond(struct oncectl *ctl);

/* The CGI program that hands its request to oncewrap's socket. */
int oncectl_cgi(struct oncectl *ctl);

/* Prints "oncectl: <database>: why" on stderr; returns ONCECTL_REFUSED. */
int oncectl_fail(const struct oncectl *ctl, enum rc rc);

#endif
