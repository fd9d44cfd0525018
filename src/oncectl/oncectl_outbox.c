/*
 * oncectl outbox: lists effects, and retries or drops them.
 *
 * A refusal names the state that forbids the change.  The store alone decides;
 * the lookup before it only makes better messages.
 */
#include "config.h"

#include <err.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "oncectl.h"

/* --- one effect --------------------------------------------------------- */

/* An effect as it is shown. */
struct shown {
	struct effect e;
	const char *type; /* of the object in an export */
	const char *reference;
	int64_t next_at; /* wall clock */
};

#define IN(member) offsetof(struct shown, e.member)
#define AT(member) offsetof(struct shown, member)
/* In a table the columns that may be long stand on the right. */
static const struct oncectl_column columns[] = {
	/* in exports only */
	{ "type", NULL, 0, 0, AT(type), ONCECTL_TEXT },
	/* NLISTED columns, in lists too */
	{ "id", "ID", 1, 6, IN(id), ONCECTL_NUMBER },
	{ "key", "KEY", 8, 36, IN(key), ONCECTL_TEXT },
	{ "scope", "SCOPE", 6, 12, IN(scope), ONCECTL_TEXT },
	{ "path", "PATH", 7, 16, IN(path), ONCECTL_TEXT },
	{ "topic", "TOPIC", 5, 8, IN(topic), ONCECTL_TEXT },
	{ "state", "STATE", 2, 11, IN(state), ONCECTL_EFFECT_STATE },
	{ "attempts", "ATTEMPTS", 3, 8, IN(attempts), ONCECTL_INT },
	{ "next_at", "NEXT", 4, 20, AT(next_at), ONCECTL_TIME },
	{ "reference", NULL, 0, 0, AT(reference), ONCECTL_TEXT },
	{ "last_error", "LAST ERROR", 9, 0, IN(last_error), ONCECTL_TEXT },
	/* in exports only */
	{ "effect_key", NULL, 0, 0, IN(effect_key), ONCECTL_ARRAY },
	{ "created_at", NULL, 0, 0, IN(created_at), ONCECTL_TIME },
	{ "updated_at", NULL, 0, 0, IN(updated_at), ONCECTL_TIME },
};
#undef AT
#undef IN
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))
#define NLISTED  10

/*
 * The output of the program may hold any byte.  A NUL, which would end the
 * text, becomes another byte that is no UTF-8.  What is shown borrows what the
 * effect owns.
 */
static struct shown
outbox_shown(const struct oncectl *ctl, struct effect *e)
{
	struct shown s = { .e = *e, .type = "effect" };

	for (size_t i = 0; i < e->reference.len; i++)
		if (e->reference.data[i] == '\0')
			e->reference.data[i] = '\xff';
	if (e->reference.len > 0)
		s.reference = e->reference.data;
	/* A handler's insert has 0: due at once. */
	if (e->has_turn)
		s.next_at = e->next_at == 0
		    ? e->created_at
		    : store_wall(ctl->store, e->next_at);
	return s;
}

/* --- ls, export --------------------------------------------------------- */

/* Prints all effects that the filter lets through to the list. */
static int
outbox_print_all(struct oncectl *ctl, const struct store_effect_filter *filter,
    struct oncectl_table table)
{
	struct store_cursor *outbox = NULL;
	struct effect row;
	struct shown s;
	enum rc rc;

	rc = store_outbox_list(ctl->store, filter, &outbox);
	while (rc == RC_OK && (rc = store_outbox_next(outbox, &row)) == RC_OK) {
		s = outbox_shown(ctl, &row);
		oncectl_print_row(&table, &s);
		effect_free(&row);
	}
	store_list_free(outbox);
	return rc == RC_NOTFOUND ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

int
oncectl_outbox_export(struct oncectl *ctl)
{
	const struct store_effect_filter filter = { .since = ctl->since };

	return outbox_print_all(ctl, &filter,
	    (struct oncectl_table){ NULL, columns, NCOLUMNS, false });
}

/* --- retry, drop -------------------------------------------------------- */

/* Prints why the change is refused for that effect. */
static int
outbox_refuse(struct oncectl *ctl, int64_t id)
{
	struct effect row;
	enum rc rc = store_browse_effect(ctl->store, id, &row);

	if (rc == RC_NOTFOUND)
		return oncectl_refuse(ONCECTL_REFUSED,
		    "%s: effect %" PRId64 ": no such effect", ctl->database,
		    id);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	if (store_owner_is_dead(ctl->store, row.owner))
		warnx("effect %" PRId64 " is being tried, by a process that is "
		      "gone: \"oncectl sweep\" frees it",
		    id);
	else if (row.owner != 0)
		warnx("effect %" PRId64 " is being tried now", id);
	else
		warnx("effect %" PRId64 " is %s: only pending and dead_letter "
		      "can be tried again",
		    id, effect_state_name(row.state));
	effect_free(&row);
	return ONCECTL_REFUSED;
}

static void
print_change(const struct oncectl *ctl, const struct effect *row,
    const char *text, const char *to)
{
	const char *from = effect_state_name(row->state);
	struct json_write *o;

	if (ctl->json) {
		o = oncectl_print_object();
		json_write_number(o, "id", row->id);
		json_write_text(o, "from", from);
		json_write_text(o, "to", to);
		oncectl_print_json(o);
		return;
	}
	printf("effect %" PRId64 ", %s of key %s: %s -> %s\n", row->id,
	    oncectl_print_escaped(row->topic), oncectl_print_escaped(row->key),
	    from, text);
}

static int
outbox_change(struct oncectl *ctl, int64_t id, bool drop)
{
	const char *pending = effect_state_name(EFFECT_PENDING);
	struct effect row;
	int status = ONCECTL_DONE;
	enum rc rc;

	rc = store_browse_effect(ctl->store, id, &row);
	if (rc == RC_NOTFOUND)
		return outbox_refuse(ctl, id);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	rc = drop ? store_effect_drop(ctl->store, id)
		  : store_effect_retry(ctl->store, id);
	oncectl_log(ctl, drop ? "drop" : "retry", rc,
	    &(struct store_identity){ row.scope, row.path, row.key },
	    &LOG_I("effect", id));
	if (rc == RC_LOST)
		status = outbox_refuse(ctl, id);
	else if (rc != RC_OK)
		status = oncectl_change_failed(ctl, rc, "outbox ls");
	else
		print_change(ctl, &row, drop ? "dropped" : pending,
		    drop ? NULL : pending);
	effect_free(&row);
	return status;
}

/* --- the command line --------------------------------------------------- */

static int
outbox_ls(struct oncectl *ctl)
{
	struct store_effect_filter filter = { .scope = ctl->scope,
		.path = ctl->path };

	if (ctl->nargs > 1)
		return oncectl_refuse(
		    ONCECTL_USAGE, "outbox ls: too many arguments");
	if (ctl->state != NULL &&
	    !effect_state_parse(ctl->state, &filter.state))
		return oncectl_refuse(ONCECTL_USAGE,
		    "--state: \"%s\" is not a state of an effect: pending, "
		    "delivered or dead_letter",
		    ctl->state);
	return outbox_print_all(ctl, &filter,
	    (struct oncectl_table){
		ctl->json ? NULL : stdout, columns + 1, NLISTED, false });
}

int
oncectl_outbox(struct oncectl *ctl)
{
	const char *verb = ctl->nargs > 0 ? ctl->arg[0] : "";
	const bool drop = strcmp(verb, "drop") == 0;
	int64_t id;

	if (strcmp(verb, "ls") == 0)
		return outbox_ls(ctl);
	if (!drop && strcmp(verb, "retry") != 0)
		return oncectl_refuse(
		    ONCECTL_USAGE, "outbox: say ls, retry ID or drop ID");
	if (ctl->given != 0)
		return oncectl_refuse(
		    ONCECTL_USAGE, "outbox %s: takes no such option", verb);
	if (ctl->nargs != 2 || !ascii_number(ctl->arg[1], &id) || id == 0)
		return oncectl_refuse(ONCECTL_USAGE,
		    "outbox %s: needs the ID of an effect, as \"outbox ls\" "
		    "shows it",
		    verb);
	return outbox_change(ctl, id, drop);
}
