/*
 * What only a PostgreSQL database has: oncectl init, copy and accept-loss.
 */
#include "config.h"

#include <err.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "conf_value.h"
#include "store_module.h"
#include "oncectl.h"

/* The module; NULL, with a message. */
static const struct store_module *
load_module(const struct oncectl *ctl)
{
	const struct store_module *module;
	char why[512];

	if (store_module_load(&module, why, sizeof(why)) == RC_OK)
		return module;
	warnx("%s: %s", ctl->command, why);
	return NULL;
}

/* The same for the database itself; instead: what does the same for an SQLite
 * database. */
static const struct store_module *
module_for(const struct oncectl *ctl, const char *instead)
{
	if (conf_text_is_postgresql(ctl->database))
		return load_module(ctl);
	warnx("%s: %s: only for a PostgreSQL database, whose name begins with "
	      "postgresql://; %s",
	    ctl->command, ctl->database, instead);
	return NULL;
}

/* Logs the command, and says why it was not done. */
static bool
was_done(const struct oncectl *ctl, enum rc rc, const char *why)
{
	oncectl_log(ctl, ctl->command, rc, NULL, NULL);
	if (rc != RC_OK)
		warnx("%s: %s", ctl->command, why);
	return rc == RC_OK;
}

int
oncectl_init(struct oncectl *ctl)
{
	const struct store_module *module = module_for(
	    ctl, "oncewrap makes an SQLite database at its first start");
	struct store_options so;
	char why[1024];

	if (module == NULL)
		return ONCECTL_REFUSED;
	oncectl_store_options(ctl, &so);
	so.create = true;
	if (!was_done(
		ctl, module->init(&so, ctl->grant, why, sizeof(why)), why))
		return ONCECTL_REFUSED;
	if (ctl->grant != NULL)
		printf("the tables are there; role %s may call the functions "
		       "for handlers\n",
		    ctl->grant);
	else
		puts("the tables are there");
	return ONCECTL_DONE;
}

/* Has the store accept something, and says what follows. */
int
oncectl_accept(struct oncectl *ctl)
{
	const bool loss = strcmp(ctl->command, "accept-loss") == 0;
	const struct store_module *module = module_for(ctl,
	    loss ? "with an SQLite database, oncewrap goes on after a restart"
		 : "with an SQLite database, time does not follow the wall "
		   "clock");
	char why[1024];
	enum rc rc;

	if (module == NULL)
		return ONCECTL_REFUSED;
	rc = loss ? module->accept_loss(ctl->store, why, sizeof(why))
		  : module->accept_clock(ctl->store, why, sizeof(why));
	if (!was_done(ctl, rc, why))
		return ONCECTL_REFUSED;
	puts(loss ? "accepted: daemons that wait go on within a fifth of "
		    "owner_timeout, and nothing changes for the others; only "
		    "their logs and health tell whether one waits "
		    "(store-went-back)"
		  : "accepted: the store's time follows the server's clock; "
		    "daemons notice within a fifth of owner_timeout, and "
		    "within a minute");
	return ONCECTL_DONE;
}

/* Opens the target; NULL, with a message. */
static struct store *
open_target(struct oncectl *ctl, const struct store_module *module)
{
	struct store_options so;
	struct store *to;
	char why[1024];

	oncectl_store_options(ctl, &so);
	so.database = ctl->to;
	so.create = true;
	if (module->init(&so, NULL, why, sizeof(why)) == RC_OK) {
		so.create = false;
		if (module->open(&to, &so, why, sizeof(why)) == RC_OK)
			return to;
	}
	warnx("copy: %s", why);
	return NULL;
}

#define NUMBER(member)                                                        \
	{                                                                     \
#member, NULL, 0, 0, offsetof(struct store_transfer, member), \
		    ONCECTL_NUMBER                                            \
	}
/* What was copied and compared. */
static const struct oncectl_column columns[] = { NUMBER(keys),
	NUMBER(answer_bytes), NUMBER(requests), NUMBER(outputs),
	NUMBER(effects), NUMBER(payload_bytes) };
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

static void
print_transfer(const struct oncectl *ctl, const struct store_transfer *sums)
{
	struct json_write *o;

	if (!ctl->json) {
		puts("copied and compared:");
		oncectl_print_lines(columns, NCOLUMNS, sums);
		return;
	}
	o = oncectl_print_object();
	oncectl_print_members(o, columns, NCOLUMNS, sums);
	oncectl_print_json(o);
}

/* A target that is no URI is shown, unless it may hold a password. */
static const struct store_module *
module_for_target(const struct oncectl *ctl)
{
	if (conf_text_is_postgresql(ctl->to))
		return load_module(ctl);
	warnx("copy: --to%s%s: not the URI of a PostgreSQL database, which "
	      "begins with postgresql://; \"oncectl backup\" copies into a "
	      "file",
	    strpbrk(ctl->to, "@=") == NULL ? " " : "",
	    strpbrk(ctl->to, "@=") == NULL ? ctl->to : "");
	return NULL;
}

int
oncectl_copy(struct oncectl *ctl)
{
	const struct store_module *module;
	struct store_transfer n;
	struct store *to;
	char why[1024];
	enum rc rc;

	if (ctl->to == NULL)
		return oncectl_refuse(
		    ONCECTL_USAGE, "copy: name the target: --to URI");
	if (conf_text_is_postgresql(ctl->database))
		return oncectl_refuse(ONCECTL_REFUSED,
		    "copy: %s: only an SQLite database is copied; pg_dump(1) "
		    "copies a PostgreSQL one",
		    ctl->database);
	if ((module = module_for_target(ctl)) == NULL ||
	    (to = open_target(ctl, module)) == NULL)
		return ONCECTL_REFUSED;
	rc = module->copy(to, ctl->store, &n, why, sizeof(why));
	store_close(to);
	if (!was_done(ctl, rc, why))
		return ONCECTL_REFUSED;
	print_transfer(ctl, &n);
	return ONCECTL_DONE;
}
