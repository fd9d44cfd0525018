/*
 * oncectl ls, show and export: the records of keys.  export also prints the
 * outbox, and show the stored answer of a key, byte for byte: a CGI response,
 * as a retry gets it and as resolve --completed reads it.
 */
#include "config.h"

#include <assert.h>
#include <err.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "route.h"
#include "oncectl.h"

/* --- a response, for people ----------------------------------------------- */

/* Writes bytes as they are; on a terminal no byte acts as a control but the end
 * of a line and the tabulator. */
static void
response_print_bytes(const char *p, size_t n)
{
	if (isatty(STDOUT_FILENO) == 1)
		fputs(oncectl_print_escaped_text(p, n, true), stdout);
	else
		fwrite(p, 1, n, stdout);
}

static enum rc
response_print_text(const struct response *r)
{
	struct buf head;
	enum rc rc;

	buf_init(&head, SIZE_MAX);
	rc = response_head(r, &head);
	if (rc == RC_OK) {
		response_print_bytes(head.data, head.len);
		if (r->body_len > 0)
			response_print_bytes(r->body, r->body_len);
	}
	buf_free(&head);
	return rc;
}

/* --- for programs ------------------------------------------------------- */

/* RFC 4648, section 4; the caller frees it.  NULL: no memory.  No max_response
 * is above 512 MiB, so the lengths are integers. */
static char *
response_base64(const void *bytes, size_t n)
{
	char *text = malloc((n + 2) / 3 * 4 + 1);

	assert(n <= INT_MAX / 2);
	if (text != NULL)
		(void)EVP_EncodeBlock((unsigned char *)text, bytes, (int)n);
	return text;
}

static void
json_fields(struct json_write *o, const struct response *r)
{
	struct buf name, value;
	struct field f;
	size_t pos = 0;

	buf_init(&name, SIZE_MAX);
	buf_init(&value, SIZE_MAX);

	json_write_name(o, "fields");
	json_write_raw(o, "[");
	while (response_next(&r->fields, &pos, &f)) {
		buf_clear(&name);
		buf_clear(&value);
		if (o->rc == RC_OK)
			o->rc = buf_add(&name, f.name.p, f.name.n);
		if (o->rc == RC_OK)
			o->rc = buf_add(&value, f.value.p, f.value.n);
		json_write_raw(o, f.name.p == r->fields.data ? "{" : ",{");
		json_write_text(o, "name", name.data);
		json_write_text(o, "value", value.data);
		json_write_raw(o, "}");
	}
	json_write_raw(o, "]");
	buf_free(&name);
	buf_free(&value);
}

static enum rc
response_print_json(const struct record *row, const struct response *r)
{
	char *body = response_base64(r->body, r->body_len);
	struct json_write *o;

	if (body == NULL)
		return RC_NOMEM;
	o = oncectl_row_identity(row);
	json_write_number(o, "status", r->status);
	json_fields(o, r);
	json_write_text(o, "body_base64", body);
	oncectl_print_json(o);
	free(body);
	return RC_OK;
}

/* --- the answer --------------------------------------------------------- */

/* Prints what a retry gets: without the fields of replay_drop, which an answer
 * of the handler's own transaction still has. */
static enum rc
response_print_any(
    const struct oncectl *ctl, const struct record *row, struct response *r)
{
	const struct conf_list *drop =
	    &route_find(ctl->conf, row->path)->replay_drop;

	if (r->as_given)
		response_remove(r, (const char *const *)drop->item, drop->n);
	return ctl->json ? response_print_json(row, r) : response_print_text(r);
}

/* Prints the answer that a retry of this key gets. */
static int
response_print(struct oncectl *ctl, const struct record *row)
{
	const struct store_identity identity = { row->scope, row->path,
		row->key };
	struct spool *body = NULL;
	struct response response;
	enum rc rc;
	int status = ONCECTL_DONE;

	if (row->state != RECORD_COMPLETED)
		return oncectl_row_refuse(row, "it has no stored answer");
	if (!row->replayable)
		return oncectl_row_refuse(
		    row, "its answer was not kept, a retry is told so");
	response_init(&response);
	/* As before a replay: what is shown is durable. */
	rc = store_make_durable(ctl->store, row);
	if (rc == RC_OK)
		rc = store_answer(
		    ctl->store, &identity, row->id, &response, &body);
	if (rc == RC_NOTFOUND)
		status = oncectl_row_refuse(row, "but it changed meanwhile");
	else if (rc != RC_OK ||
	    (rc = response_print_any(ctl, row, &response)) != RC_OK)
		status = oncectl_fail(ctl, rc);
	response_free(&response);
	spool_free(body);
	return status;
}

/* --- an answer that was not accepted -------------------------------------- */

/* How the program ended, an empty line, and the beginning of what it printed,
 * byte for byte. */
static void
output_print_text(const struct store_output *o)
{
	printf("attempt: %d\n", o->attempt);
	if (o->signal != 0)
		printf("signal: %d\n", o->signal);
	else if (o->exit_status != -1)
		printf("exit: %d\n", o->exit_status);
	else
		printf("exit: none, oncewrap ended the program\n");
	printf("bytes: %" PRId64, o->length);
	if ((uint64_t)o->length > o->bytes.len)
		printf(", of which the first %zu were kept", o->bytes.len);
	printf("\n\n");
	response_print_bytes(o->bytes.data, o->bytes.len);
}

static void
add_number_or_null(struct json_write *o, const char *name, int number, int none)
{
	if (number != none)
		json_write_number(o, name, number);
	else
		json_write_text(o, name, NULL);
}

static enum rc
output_print_json(const struct record *row, const struct store_output *output)
{
	char *bytes = response_base64(output->bytes.data, output->bytes.len);
	struct json_write *o;

	if (bytes == NULL)
		return RC_NOMEM;
	o = oncectl_row_identity(row);
	json_write_number(o, "attempt", output->attempt);
	add_number_or_null(o, "exit", output->exit_status, -1);
	add_number_or_null(o, "signal", output->signal, 0);
	json_write_number(o, "bytes", output->length);
	json_write_text(o, "output_base64", bytes);
	oncectl_print_json(o);
	free(bytes);
	return RC_OK;
}

/* Prints what a program printed when its answer was not accepted, and how the
 * program ended. */
static int
output_print(struct oncectl *ctl, const struct record *row)
{
	struct store_output output;
	enum rc rc = store_output(ctl->store, row->id, &output);

	if (rc == RC_OK && !output.refused) {
		store_output_free(&output);
		rc = RC_NOTFOUND;
	}
	if (rc == RC_NOTFOUND)
		return oncectl_refuse(ONCECTL_REFUSED,
		    "%s: no answer of its program was refused",
		    oncectl_row_name(row));
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	if (ctl->json)
		rc = output_print_json(row, &output);
	else
		output_print_text(&output);
	store_output_free(&output);
	return rc == RC_OK ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

/* --- a key ---------------------------------------------------------------- */

static int
row_print(struct oncectl *ctl, const struct record *row)
{
	struct store_output output;
	enum rc rc = store_output(ctl->store, row->id, &output);
	const bool any = rc == RC_OK && output.errors.len > 0;

	if (rc != RC_OK && rc != RC_NOTFOUND)
		return oncectl_fail(ctl, rc);
	oncectl_row_show(ctl, row, any ? output.errors.data : NULL);
	if (rc == RC_OK)
		store_output_free(&output);
	return ONCECTL_DONE;
}

/* --- the subcommands ------------------------------------------------------ */

/* Prints all keys that the filter lets through, to a table or as objects. */
static int
keys_print_all(
    struct oncectl *ctl, const struct store_filter *filter, FILE *file)
{
	struct oncectl_table table = oncectl_row_table(file);
	struct store_cursor *cursor = NULL;
	struct record row;
	enum rc rc;

	rc = store_list(ctl->store, filter, &cursor);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	while ((rc = store_list_next(cursor, &row)) == RC_OK) {
		oncectl_row_print(ctl, &table, &row);
		record_free(&row);
	}
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

bool
oncectl_filter(const struct oncectl *ctl, struct store_filter *filter)
{
	int64_t made;

	memset(filter, 0, sizeof(*filter));
	if (ctl->state != NULL &&
	    (!record_state_parse(ctl->state, &filter->state) ||
		filter->state == RECORD_NONE)) {
		warnx("--state: \"%s\" is not a state of a key: pending, "
		      "in_progress, completed, failed_retryable, unknown, "
		      "dead_letter or expired",
		    ctl->state);
		return false;
	}
	filter->scope = ctl->scope;
	filter->path = ctl->path;
	filter->peer = ctl->peer;
	filter->from = ctl->since;
	filter->to = ctl->until;
	if (ctl->older > 0) {
		made =
		    store_wall(ctl->store, store_now(ctl->store)) - ctl->older;
		if (filter->to == 0 || made < filter->to)
			filter->to = made;
	}
	return true;
}

int
oncectl_ls(struct oncectl *ctl)
{
	struct store_filter filter;

	if (!oncectl_filter(ctl, &filter))
		return ONCECTL_USAGE;
	return keys_print_all(ctl, &filter, ctl->json ? NULL : stdout);
}

int
oncectl_export(struct oncectl *ctl)
{
	const struct store_filter filter = { .since = ctl->since };
	const int status = keys_print_all(ctl, &filter, NULL);

	return status == ONCECTL_DONE ? oncectl_outbox_export(ctl) : status;
}

int
oncectl_show(struct oncectl *ctl)
{
	const unsigned both = ONCECTL_RESPONSE | ONCECTL_OUTPUT;
	const char *warning;
	struct record row;
	int status;

	if ((ctl->given & both) == both)
		return oncectl_refuse(
		    ONCECTL_USAGE, "show: either --response or --output");
	if ((status = oncectl_row_find(ctl, &row)) != -1)
		return status;
	if (ctl->instance != NULL &&
	    (warning = store_instance_warning(&row, ctl->instance)) != NULL)
		warnx("%s", warning);
	if ((ctl->given & ONCECTL_RESPONSE) != 0)
		status = response_print(ctl, &row);
	else if ((ctl->given & ONCECTL_OUTPUT) != 0)
		status = output_print(ctl, &row);
	else
		status = row_print(ctl, &row);
	record_free(&row);
	return status;
}
