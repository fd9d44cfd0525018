/*
 * How oncectl prints.  Scopes, paths and keys are what strangers sent: no byte
 * of them reaches a terminal as a control, or makes a line no JSON.
 *
 * It must not know: the store, or what the columns mean.
 */
#include "config.h"

#include <assert.h>
#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "clock.h"
#include "oncectl_print.h"

/* Rows that are kept back to find out how wide they are. */
#define BATCH 1000

struct oncectl_table {
	FILE *file;
	size_t columns, rows;
	size_t *width;
	char **cell;   /* BATCH rows, escaped */
	bool has_rows; /* besides the titles */
};

/* Memory, or the end. */
static void *
must(void *p)
{
	if (p == NULL)
		errx(1, "out of memory");
	return p;
}

/* --- text -------------------------------------------------------------- */

char *
oncectl_print_escaped(const char *s)
{
	size_t n, left = strlen(s);
	char *out = must(malloc(4 * left + 1)), *p = out;
	mbstate_t shift;
	wchar_t wide;

	memset(&shift, 0, sizeof(shift));
	while (left > 0) {
		n = mbrtowc(&wide, s, left, &shift);
		if (n > left) { /* not a character of the locale */
			memset(&shift, 0, sizeof(shift));
			n = 1;
			wide = L'\0';
		}
		if (wide == L'\\') {
			*p++ = '\\';
			*p++ = '\\';
		} else if (wcwidth(wide) > 0) {
			memcpy(p, s, n);
			p += n;
		} else { /* controls, and what hides or joins others */
			for (size_t i = 0; i < n; i++)
				p += snprintf(
				    p, 5, "\\x%02x", (unsigned char)s[i]);
		}
		s += n;
		left -= n;
	}
	*p = '\0';
	return out;
}

/* Columns that printable text takes. */
static size_t
width_of(const char *s)
{
	size_t n, left = strlen(s), width = 0;
	mbstate_t shift;
	wchar_t wide;

	memset(&shift, 0, sizeof(shift));
	for (; left > 0; s += n, left -= n) {
		n = mbrtowc(&wide, s, left, &shift);
		assert(n >= 1 && n <= left);
		width += (size_t)wcwidth(wide);
	}
	return width;
}

const char *
oncectl_print_time(int64_t wall, char out[ONCECTL_PRINT_TIME])
{
	_Static_assert(CLOCK_RFC3339_LEN < ONCECTL_PRINT_TIME, "too small");

	if (wall == 0)
		return "-";
	clock_rfc3339(wall, out);
	out[strlen("2024-01-01T00:00:00")] = 'Z';
	out[strlen("2024-01-01T00:00:00Z")] = '\0';
	return out;
}

/* --- tables ------------------------------------------------------------ */

static void
print_line(struct oncectl_table *t, const char *const *cells)
{
	for (size_t i = 0; i < t->columns; i++) {
		size_t pad = t->width[i] - width_of(cells[i]);

		fputs(cells[i], t->file);
		if (i + 1 < t->columns)
			fprintf(t->file, "%*s", (int)pad + 2, "");
	}
	fputc('\n', t->file);
}

static void
flush(struct oncectl_table *t)
{
	size_t i, n = t->rows * t->columns;

	for (i = 0; i < n; i++) {
		size_t width = width_of(t->cell[i]);

		if (width > t->width[i % t->columns])
			t->width[i % t->columns] = width;
	}
	for (i = 0; t->has_rows && i < t->rows; i++)
		print_line(t, (const char *const *)(t->cell + i * t->columns));
	for (i = 0; i < n; i++)
		free(t->cell[i]);
	t->rows = 0;
}

static void
add_row(struct oncectl_table *t, const char *const *cells)
{
	char **row;

	if (t->rows == BATCH)
		flush(t);
	row = t->cell + t->rows * t->columns;
	for (size_t i = 0; i < t->columns; i++)
		row[i] =
		    oncectl_print_escaped(cells[i] != NULL ? cells[i] : "-");
	t->rows++;
}

struct oncectl_table *
oncectl_print_table(FILE *file, const char *const *titles, size_t columns)
{
	struct oncectl_table *t = must(calloc(1, sizeof(*t)));

	t->file = file;
	t->columns = columns;
	t->width = must(calloc(columns, sizeof(t->width[0])));
	t->cell = must(calloc(columns * BATCH, sizeof(t->cell[0])));
	add_row(t, titles);
	return t;
}

void
oncectl_print_row(struct oncectl_table *t, const char *const *cells)
{
	t->has_rows = true;
	add_row(t, cells);
}

void
oncectl_print_table_free(struct oncectl_table *t)
{
	if (t == NULL)
		return;
	flush(t);
	free(t->cell);
	free(t->width);
	free(t);
}

/* --- JSON -------------------------------------------------------------- */

/* Bytes of the UTF-8 character (RFC 3629, section 4) that s begins with; 0 if
 * it begins with none. */
static size_t
utf8_length(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	/* no longer than need be, no surrogate, nothing above U+10FFFF */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

/* The caller frees it. */
static char *
as_utf8(const char *s)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char *out = must(malloc(3 * strlen(s) + 1)), *p = out;
	size_t n;

	while (*s != '\0') {
		n = utf8_length((const unsigned char *)s);
		if (n > 0) {
			memcpy(p, s, n);
			p += n;
			s += n;
		} else {
			memcpy(p, replacement, 3);
			p += 3;
			s++;
		}
	}
	*p = '\0';
	return out;
}

cJSON *
oncectl_print_object(void)
{
	return must(cJSON_CreateObject());
}

void
oncectl_print_json_text(cJSON *o, const char *name, const char *text)
{
	char *utf8;

	if (text == NULL) {
		oncectl_print_json_null(o, name);
		return;
	}
	utf8 = as_utf8(text);
	must(cJSON_AddStringToObject(o, name, utf8));
	free(utf8);
}

void
oncectl_print_json_number(cJSON *o, const char *name, int64_t n)
{
	must(cJSON_AddNumberToObject(o, name, (double)n));
}

void
oncectl_print_json_bool(cJSON *o, const char *name, int value)
{
	must(cJSON_AddBoolToObject(o, name, value));
}

void
oncectl_print_json_null(cJSON *o, const char *name)
{
	must(cJSON_AddNullToObject(o, name));
}

void
oncectl_print_json_time(cJSON *o, const char *name, int64_t wall)
{
	char text[CLOCK_RFC3339_LEN + 1];

	if (wall == 0) {
		oncectl_print_json_null(o, name);
		return;
	}
	clock_rfc3339(wall, text);
	oncectl_print_json_text(o, name, text);
}

void
oncectl_print_json_object(cJSON *o, const char *name, cJSON *member)
{
	if (!cJSON_AddItemToObject(o, name, member))
		must(NULL);
}

void
oncectl_print_json(cJSON *o)
{
	char *text = must(cJSON_PrintUnformatted(o));

	puts(text);
	cJSON_free(text);
	cJSON_Delete(o);
}
