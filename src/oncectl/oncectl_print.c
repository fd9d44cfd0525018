/*
 * How oncectl prints and logs.  Strangers chose the scopes, paths and keys: no
 * byte of them reaches a terminal as a control, or makes a line invalid as
 * JSON.
 *
 * This file does not know what the columns mean.
 */
#include "config.h"

#include <assert.h>
#include <err.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "conf_value.h"
#include "date.h"
#include "log.h"
#include "resolve.h"
#include "scope.h"
#include "store_files.h"
#include "store_outbox.h"
#include "user.h"
#include "oncectl.h"

/* Texts that live at once. */
#define TEXTS 8

/* If it is NULL, there is no memory, and the process ends. */
static void
print_must(const void *p)
{
	if (p == NULL)
		errx(ONCECTL_REFUSED, "out of memory");
}

/* --- text -------------------------------------------------------------- */

const char *
oncectl_print_keep(char *text)
{
	static char *texts[TEXTS];
	static unsigned next;
	char **place = &texts[next++ % TEXTS];

	print_must(text);
	free(*place);
	*place = text;
	return text;
}

const char *
oncectl_print_escaped_text(const char *s, size_t left, bool lines)
{
	char *out = malloc(4 * left + 1), *p = out;
	mbstate_t shift;
	wchar_t wide;
	size_t n;

	print_must(out);
	memset(&shift, 0, sizeof(shift));
	for (; left > 0; s += n, left -= n) {
		n = mbrtowc(&wide, s, left, &shift);
		if (n == 0 || n > left) { /* no character of the locale */
			memset(&shift, 0, sizeof(shift));
			n = 1;
			wide = L'\0';
		}
		if (lines && wide == L'\r' && left > 1 && s[1] == '\n')
			continue;
		if (lines && (wide == L'\n' || wide == L'\t')) {
			*p++ = *s;
		} else if (wide == L'\\') {
			*p++ = '\\';
			*p++ = '\\';
		} else if (wcwidth(wide) > 0) {
			memcpy(p, s, n);
			p += n;
		} else { /* controls, and characters that hide or join others */
			for (size_t i = 0; i < n; i++)
				p += snprintf(
				    p, 5, "\\x%02x", (unsigned char)s[i]);
		}
	}
	*p = '\0';
	return oncectl_print_keep(out);
}

const char *
oncectl_print_escaped(const char *s)
{
	return oncectl_print_escaped_text(s, strlen(s), false);
}

const char *
oncectl_print_time(int64_t wall, char out[ONCECTL_PRINT_TIME])
{
	_Static_assert(DATE_RFC3339_LEN < ONCECTL_PRINT_TIME, "too small");

	if (wall == 0)
		return "-";
	date_put_rfc3339(wall, out);
	out[strlen("2024-01-01T00:00:00")] = 'Z';
	out[strlen("2024-01-01T00:00:00Z")] = '\0';
	return out;
}

/* --- cells ------------------------------------------------------------- */

/* Room for the text of a cell that is no text. */
#define CELL 32
_Static_assert(CELL >= ONCECTL_PRINT_TIME, "a time fits");

/* Returns the member as text; NULL for null. */
static const char *
cell_of(const struct oncectl_column *column, const void *row, char out[CELL])
{
	const void *p = (const char *)row + column->offset;

	switch (column->kind) {
	case ONCECTL_TEXT:
		return *(const char *const *)p;
	case ONCECTL_ARRAY:
		return *(const char *)p != '\0' ? p : NULL;
	case ONCECTL_INT_OR_NULL:
		if (*(const int *)p == 0)
			return NULL;
		/* FALLTHROUGH */
	case ONCECTL_INT:
		snprintf(out, CELL, "%d", *(const int *)p);
		return out;
	case ONCECTL_NUMBER:
		snprintf(out, CELL, "%" PRId64, *(const int64_t *)p);
		return out;
	case ONCECTL_TIME:
		return oncectl_print_time(*(const int64_t *)p, out);
	case ONCECTL_BOOL:
		return *(const bool *)p ? "ok" : "BAD";
	case ONCECTL_KEY_STATE:
		return record_state_name(*(const enum record_state *)p);
	case ONCECTL_EFFECT_STATE:
		return effect_state_name(*(const enum effect_state *)p);
	}
	assert(!"a kind of column that is in no table");
	return NULL;
}

/* The cell for people; NULL and "" are "-". */
static const char *
cell_shown(const struct oncectl_column *column, const void *row)
{
	char room[CELL];
	const char *cell = cell_of(column, row, room);

	return oncectl_print_escaped(
	    cell != NULL && cell[0] != '\0' ? cell : "-");
}

void
oncectl_print_lines(
    const struct oncectl_column *columns, size_t n, const void *row)
{
	for (size_t i = 0; i < n; i++)
		printf("%s: %s\n", columns[i].member,
		    cell_shown(&columns[i], row));
}

/* --- tables ------------------------------------------------------------ */

static const struct oncectl_column *
table_column(const struct oncectl_table *t, unsigned position)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->columns[i].position == position)
			return &t->columns[i];
	return NULL;
}

/* Prints the cells of a row; NULL: the titles. */
static void
print_line(const struct oncectl_table *t, const void *row)
{
	const struct oncectl_column *c;
	const char *text;
	int pad = 0;

	for (unsigned i = 1; (c = table_column(t, i)) != NULL; i++) {
		text = row != NULL ? cell_shown(c, row) : c->title;
		fprintf(t->file, "%*s%s", pad, "", text);
		pad = c->width - (int)mbstowcs(NULL, text, 0);
		pad = (pad > 0 ? pad : 0) + 2;
	}
	fputc('\n', t->file);
}

void
oncectl_print_row(struct oncectl_table *t, const void *row)
{
	struct json_write *o;

	if (t->file == NULL) {
		o = oncectl_print_object();
		oncectl_print_members(o, t->columns, t->n, row);
		oncectl_print_json(o);
		return;
	}
	if (!t->begun)
		print_line(t, NULL);
	t->begun = true;
	print_line(t, row);
}

/* --- JSON -------------------------------------------------------------- */

struct json_write *
oncectl_print_object(void)
{
	static struct buf line;
	static struct json_write object;

	buf_init(&line, SIZE_MAX);
	object = (struct json_write){ &line, RC_OK };
	json_write_raw(&object, "{");
	return &object;
}

static bool
is_number(enum oncectl_kind kind)
{
	return kind == ONCECTL_INT || kind == ONCECTL_INT_OR_NULL ||
	    kind == ONCECTL_NUMBER;
}

void
oncectl_print_members(struct json_write *o,
    const struct oncectl_column *columns, size_t n, const void *row)
{
	char room[CELL];

	for (const struct oncectl_column *c = columns; c < columns + n; c++) {
		const void *p = (const char *)row + c->offset;
		const char *cell = cell_of(c, row, room);

		if (c->kind == ONCECTL_TIME)
			json_write_time(o, c->member, *(const int64_t *)p);
		else if (c->kind == ONCECTL_BOOL)
			json_write_bool(o, c->member, *(const bool *)p);
		else if (is_number(c->kind) && cell != NULL) {
			json_write_name(o, c->member);
			json_write_raw(o, cell);
		} else
			json_write_text(o, c->member, cell);
	}
}

void
oncectl_print_json(struct json_write *o)
{
	json_write_raw(o, "}");
	if (o->rc != RC_OK)
		print_must(NULL);
	puts(o->out->data);
	buf_free(o->out);
}

/* --- failures and the log ----------------------------------------------- */

int
oncectl_refuse(int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vwarnx(format, ap);
	va_end(ap);
	return status;
}

int
oncectl_fail(const struct oncectl *ctl, enum rc rc)
{
	struct store_files_bar bar;
	char why[512];

	if (rc == RC_READONLY && !conf_text_is_postgresql(ctl->database) &&
	    !store_files_check(ctl->database, STORE_FILES_WRITE, &bar))
		return oncectl_refuse(
		    ONCECTL_REFUSED, "%s: %s", bar.file, bar.cure);
	snprintf(why, sizeof(why), "%s", rc_text(rc));
	if (ctl->store != NULL)
		(void)store_why(ctl->store, rc, why, sizeof(why));
	return oncectl_refuse(ONCECTL_REFUSED, "%s: %s", ctl->database, why);
}

/* The file is opened for each line, because logrotate(8) may have moved it. */

#define SYSLOG "syslog"

static void
hand_over(const struct oncectl *ctl, const struct log_request *about,
    const struct log_value *values, size_t n)
{
	const bool known =
	    ctl->config != NULL && strcmp(ctl->conf->log, "stderr") != 0;
	const char *target = known ? ctl->conf->log : SYSLOG;
	static bool warned;
	int error = log_hand(target, "operator", about, values, n);

	if (error == 0 || log_hand(SYSLOG, "operator", about, values, n) == 0)
		return;
	if (!warned)
		warnx("the log has no line of this: %s: %s", target,
		    strerror(error));
	warned = true;
}

void
oncectl_log(const struct oncectl *ctl, const char *act, enum rc rc,
    const struct store_identity *key, const struct log_value *more)
{
	const char *sudo = getenv("SUDO_USER");
	struct log_request about = { .path = NULL };
	struct log_value values[5];
	char user[USER_NAME];
	size_t n = 0;

	user_name(getuid(), user);
	values[n++] = LOG_S("user", user);
	if (sudo != NULL && getuid() == 0)
		values[n++] = LOG_S("sudo_user", sudo);
	values[n++] = LOG_S("act", act);
	values[n++] = LOG_S("result", resolve_result(rc));
	if (more != NULL)
		values[n++] = *more;
	if (key != NULL) {
		about.path = key->path;
		about.key = key->key;
		scope_tag(key->scope, about.scope);
	}
	hand_over(ctl, key != NULL ? &about : NULL, values, n);
}
