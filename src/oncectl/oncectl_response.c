/*
 * The stored answer of a key, byte for byte: a CGI response, as a retry gets it
 * and as resolve --completed reads it.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "oncectl_print.h"
#include "oncectl_row.h"
#include "route.h"
#include "oncectl_response.h"

/* Bytes of a body that are written, or encoded, at a time; a multiple of 3. */
#define PIECE 49152

/* --- for people --------------------------------------------------------- */

/* Copies n bytes as a text.  No NUL need follow them, which strndup() would
 * look for where a sanitizer checks strings strictly. */
static char *
response_copy(const char *p, size_t n)
{
	char *copy = malloc(n + 1);

	if (copy == NULL)
		errx(ONCECTL_REFUSED, "out of memory");
	memcpy(copy, p, n);
	copy[n] = '\0';
	return copy;
}

/* On a terminal no byte acts as a control but the end of a line and the
 * tabulator. */
static void
print_tame(const char *p, size_t n)
{
	char one[2] = "", *text;
	const char *end = p + n, *from;

	while (p < end) {
		for (from = p; p < end && *p != '\0' && *p != '\n' &&
		     *p != '\t' && *p != '\r';)
			p++;
		if (p > from) {
			char *run = response_copy(from, (size_t)(p - from));

			text = oncectl_print_escaped(run);
			fputs(text, stdout);
			free(text);
			free(run);
			continue;
		}
		one[0] = *p++;
		if (one[0] == '\0')
			fputs("\\x00", stdout);
		else if (one[0] == '\r' && (p == end || *p != '\n'))
			fputs("\\x0d", stdout);
		else if (one[0] != '\r')
			fputs(one, stdout);
	}
}

void
oncectl_response_bytes(const char *p, size_t n)
{
	if (isatty(STDOUT_FILENO) == 1)
		print_tame(p, n);
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
		oncectl_response_bytes(head.data, head.len);
		if (r->body_len > 0)
			oncectl_response_bytes(r->body, r->body_len);
	}
	buf_free(&head);
	return rc;
}

/* --- for programs ------------------------------------------------------- */

char *
oncectl_response_base64(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	char *text = malloc((n + 2) / 3 * 4 + 1), *to = text;

	if (text == NULL)
		return NULL;
	*to = '\0';
	while (n > 0) {
		const size_t piece = n < PIECE ? n : PIECE;

		to += EVP_EncodeBlock((unsigned char *)to, p, (int)piece);
		p += piece;
		n -= piece;
	}
	return text;
}

static cJSON *
json_fields(const struct response *r)
{
	cJSON *all = cJSON_CreateArray(), *one;
	struct field f;
	size_t pos = 0;
	char *name, *value;

	while (all != NULL && response_next(&r->fields, &pos, &f)) {
		name = response_copy(f.name, f.name_len);
		value = response_copy(f.value, f.value_len);
		one = oncectl_print_object();
		if (!cJSON_AddItemToArray(all, one))
			errx(ONCECTL_REFUSED, "out of memory");
		oncectl_print_json_text(one, "name", name);
		oncectl_print_json_text(one, "value", value);
		free(value);
		free(name);
	}
	return all;
}

static enum rc
response_print_json(const struct record *row, const struct response *r)
{
	cJSON *o = oncectl_print_object();
	char *body = oncectl_response_base64(r->body, r->body_len);

	if (body == NULL) {
		cJSON_Delete(o);
		return RC_NOMEM;
	}
	oncectl_print_json_text(o, "scope", row->scope);
	oncectl_print_json_text(o, "path", row->path);
	oncectl_print_json_text(o, "key", row->key);
	oncectl_print_json_number(o, "status", r->status);
	oncectl_print_json_object(o, "fields", json_fields(r));
	oncectl_print_json_text(o, "body_base64", body);
	oncectl_print_json(o);
	free(body);
	return RC_OK;
}

/* --- the answer --------------------------------------------------------- */

static int
response_refuse(const struct record *row, const char *why)
{
	char *name = oncectl_row_name(row);

	warnx("%s is %s: %s", name, record_state_name(row->state), why);
	free(name);
	return ONCECTL_REFUSED;
}

/* Prints what a retry gets: without the fields of replay_drop, which an answer
 * of the handler's own transaction still has. */
static enum rc
print(const struct oncectl *ctl, const struct record *row, struct response *r)
{
	const struct conf_list *drop =
	    &route_find(ctl->conf, row->path)->replay_drop;

	if (r->as_given)
		response_remove(r, (const char *const *)drop->item, drop->n);
	return ctl->json ? response_print_json(row, r) : response_print_text(r);
}

int
oncectl_response_print(struct oncectl *ctl, const struct record *row)
{
	const struct store_identity identity = { row->scope, row->path,
		row->key };
	struct spool *body = NULL;
	struct response response;
	struct record record;
	enum rc rc;
	int status = ONCECTL_DONE;

	if (row->state != RECORD_COMPLETED)
		return response_refuse(row, "it has no stored answer");
	memset(&record, 0, sizeof(record));
	response_init(&response);
	rc = store_find(ctl->store, &identity, &record);
	/* As before a replay: what is shown is durable. */
	if (rc == RC_OK)
		rc = store_make_durable(ctl->store, &record);
	if (rc == RC_OK && record.kept)
		rc = store_answer(
		    ctl->store, &identity, record.id, &response, &body);
	if (rc == RC_NOTFOUND)
		status = response_refuse(row, "but it changed meanwhile");
	else if (rc == RC_OK && !record.kept)
		status = response_refuse(
		    row, "its answer was not kept, a retry is told so");
	else if (rc != RC_OK || (rc = print(ctl, row, &response)) != RC_OK)
		status = oncectl_fail(ctl, rc);
	response_free(&response);
	spool_free(body);
	record_free(&record);
	return status;
}
