/*
 * What only a PostgreSQL database has: oncectl init, copy and accept-loss.
 */
#include "config.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conf_text.h"
#include "oncectl_print.h"
#include "store_module.h"
#include "oncectl.h"

/* The module, for the database with that URI; NULL, with a message. */
static const struct store_module *
module_for(const struct oncectl *ctl, const char *database)
{
	const struct store_module *module;
	char why[512];

	if (!conf_text_is_postgresql(database)) {
		warnx("%s: only for a PostgreSQL database, whose name begins "
		      "with postgresql://",
		    ctl->command);
		return NULL;
	}
	if (store_module_load(&module, why, sizeof(why)) == RC_OK)
		return module;
	warnx("%s: %s", ctl->command, why);
	return NULL;
}

int
oncectl_init(struct oncectl *ctl)
{
	const struct store_module *module = module_for(ctl, ctl->database);
	struct store_options so;
	char why[1024];

	if (module == NULL)
		return ONCECTL_REFUSED;
	oncectl_store_options(ctl, &so);
	so.create = true;
	if (module->init(&so, ctl->grant, why, sizeof(why)) != RC_OK) {
		warnx("init: %s", why);
		return ONCECTL_REFUSED;
	}
	return ONCECTL_DONE;
}

int
oncectl_accept_loss(struct oncectl *ctl)
{
	const struct store_module *module = module_for(ctl, ctl->database);
	int64_t losses;
	char why[1024];

	if (module == NULL)
		return ONCECTL_REFUSED;
	if (module->accept_loss(ctl->store, &losses, why, sizeof(why)) !=
	    RC_OK) {
		warnx("accept-loss: %s", why);
		return ONCECTL_REFUSED;
	}
	printf("accepted, loss number %" PRId64
	       " of this database: daemons that wait go on within a fifth of "
	       "owner_timeout\n",
	    losses);
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

static void
print_transfer(const struct oncectl *ctl, const struct store_transfer *n)
{
	cJSON *o;

	if (!ctl->json) {
		printf("copied and compared: %" PRId64 " keys with %" PRId64
		       " bytes of answers, %" PRId64 " requests, %" PRId64
		       " outputs; %" PRId64 " effects with %" PRId64 " bytes\n",
		    n->keys, n->answer_bytes, n->requests, n->outputs,
		    n->effects, n->payload_bytes);
		return;
	}
	o = oncectl_print_object();
	oncectl_print_json_number(o, "keys", n->keys);
	oncectl_print_json_number(o, "answer_bytes", n->answer_bytes);
	oncectl_print_json_number(o, "requests", n->requests);
	oncectl_print_json_number(o, "outputs", n->outputs);
	oncectl_print_json_number(o, "effects", n->effects);
	oncectl_print_json_number(o, "payload_bytes", n->payload_bytes);
	oncectl_print_json(o);
}

int
oncectl_copy(struct oncectl *ctl)
{
	const struct store_module *module;
	struct store_transfer n;
	struct store *to;
	char why[1024];
	enum rc rc;

	if (ctl->to == NULL) {
		warnx("copy: name the target: --to URI");
		return ONCECTL_USAGE;
	}
	if (conf_text_is_postgresql(ctl->database)) {
		warnx("copy: from an SQLite database only; pg_dump(1) copies "
		      "a PostgreSQL one");
		return ONCECTL_REFUSED;
	}
	if ((module = module_for(ctl, ctl->to)) == NULL ||
	    (to = open_target(ctl, module)) == NULL)
		return ONCECTL_REFUSED;
	rc = module->copy(to, ctl->store, &n, why, sizeof(why));
	store_close(to);
	if (rc != RC_OK) {
		warnx("copy: %s", why);
		return ONCECTL_REFUSED;
	}
	print_transfer(ctl, &n);
	return ONCECTL_DONE;
}
