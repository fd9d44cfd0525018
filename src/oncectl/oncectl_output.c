/*
 * An answer that was not accepted: how the program ended, an empty line, and
 * the beginning of what it printed, byte for byte.
 */
#include "config.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "oncectl_print.h"
#include "oncectl_response.h"
#include "oncectl_row.h"
#include "oncectl_output.h"

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
	oncectl_response_bytes(o->bytes.data, o->bytes.len);
}

static void
add_number_or_null(cJSON *o, const char *name, int number, int none)
{
	if (number != none)
		oncectl_print_json_number(o, name, number);
	else
		oncectl_print_json_object(o, name, cJSON_CreateNull());
}

static enum rc
output_print_json(const struct record *row, const struct store_output *output)
{
	char *bytes =
	    oncectl_response_base64(output->bytes.data, output->bytes.len);
	cJSON *o;

	if (bytes == NULL)
		return RC_NOMEM;
	o = oncectl_print_object();
	oncectl_print_json_text(o, "scope", row->scope);
	oncectl_print_json_text(o, "path", row->path);
	oncectl_print_json_text(o, "key", row->key);
	oncectl_print_json_number(o, "attempt", output->attempt);
	add_number_or_null(o, "exit", output->exit_status, -1);
	add_number_or_null(o, "signal", output->signal, 0);
	oncectl_print_json_number(o, "bytes", output->length);
	oncectl_print_json_text(o, "output_base64", bytes);
	oncectl_print_json(o);
	free(bytes);
	return RC_OK;
}

int
oncectl_output_print(struct oncectl *ctl, const struct record *row)
{
	struct store_output output;
	char *name;
	enum rc rc = store_output(ctl->store, row->id, &output);

	if (rc == RC_NOTFOUND) {
		name = oncectl_row_name(row);
		warnx("%s: no answer of its program was refused", name);
		free(name);
		return ONCECTL_REFUSED;
	}
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	if (ctl->json)
		rc = output_print_json(row, &output);
	else
		output_print_text(&output);
	buf_free(&output.bytes);
	return rc == RC_OK ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}
