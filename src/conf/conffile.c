/*
 * A configuration from a file.  conf_parse.c parses the text and opens no
 * file.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "limit.h"
#include "conf.h"

struct conf *
conffile_load(const char *name, struct conf_error *err)
{
	struct conf *conf = NULL;
	struct buf text;
	FILE *file;
	size_t n;

	/* One byte more, to see the end of a file of just that length. */
	buf_init(&text, LIMIT_CONF_FILE + 1);
	if ((file = fopen(name, "re")) == NULL)
		goto failed;
	do {
		if (buf_reserve(&text, 1) != RC_OK) {
			snprintf(err->text, sizeof(err->text),
			    "%s: longer than %d bytes", name, LIMIT_CONF_FILE);
			goto out;
		}
		n = fread(
		    text.data + text.len, 1, text.cap - text.len - 1, file);
		buf_commit(&text, n);
	} while (n > 0);
	if (ferror(file))
		goto failed;
	conf = conf_parse(name, text.data, text.len, err);
	goto out;
failed:
	snprintf(err->text, sizeof(err->text), "%s: %s", name, strerror(errno));
out:
	if (file != NULL)
		fclose(file);
	buf_free(&text);
	return conf;
}
