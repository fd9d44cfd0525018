/*
 * form: fields of urlencoded and multipart bodies, however they are cut into
 * pieces; bodies that are no form; bounded memory.
 */
#include "config.h"

#include "cases.h"

#include "form.h"
#include "limit.h"
#include "out.h"

#define URL       "application/x-www-form-urlencoded"
#define MULTI     "multipart/form-data; boundary=B"
#define PART(h)   "--B\r\nContent-Disposition: form-data; " h "\r\n\r\n"
#define NEXT(h)   "\r\n" PART(h)
#define LAST      "\r\n--B--\r\n"
#define BAD_AFTER "!"

/* A name that is too long is "?"; a file name stands in "<>", a media type
 * other than text/plain in "()". */
static const struct {
	const char *name, *type, *body, *fields;
} rows[] = {
	{ "no bytes", URL, "", "" },
	{ "one field", URL, "a=1", "[a:1]" },
	{ "two fields", URL, "a=1&b=2", "[a:1][b:2]" },
	{ "field without =", URL, "a&b", "[a:][b:]" },
	{ "field without value", URL, "a=&=b", "[a:][:b]" },
	{ "empty fields", URL, "&&", "[:][:][:]" },
	{ "= in a value", URL, "a==1=", "[a:=1=]" },
	{ "value as it was sent, name decoded", URL, "a%2bb+c=%2b+1",
	    "[a+b c:%2b+1]" },
	{ "% that encodes nothing", URL, "%=%zz&%4=1", "[%:%zz][%4:1]" },
	{ "type with parameter and case",
	    "Application/X-WWW-Form-URLencoded;"
	    " charset=utf-8",
	    "a=1", "[a:1]" },

	{ "one part", MULTI, PART("name=\"a\"") "1" LAST, "[a:1]" },
	{ "name as a token", MULTI, PART("name=a") "1" LAST, "[a:1]" },
	{ "two parts", MULTI,
	    PART("name=\"a\"") "1" NEXT("name=\"b\"") "2" LAST, "[a:1][b:2]" },
	{ "empty part", MULTI, PART("name=\"a\"") LAST, "[a:]" },
	{ "empty part without the line end before its boundary", MULTI,
	    PART("name=\"a\"") "--B--", "[a:]" },
	{ "line ends at both ends", MULTI, PART("name=\"a\"") "\r\n1\r\n" LAST,
	    "[a:\r\n1\r\n]" },
	{ "what only begins as a boundary", MULTI,
	    PART("name=\"a\"") "\r\n-\r\n--\r\r\n--C\r\n--" LAST,
	    "[a:\r\n-\r\n--\r\r\n--C\r\n--]" },
	{ "data that begins as the rest of a boundary", MULTI,
	    PART("name=\"a\"") "--C" LAST, "[a:--C]" },
	{ "preamble and epilogue", MULTI,
	    "x\r\n--\r\n" PART("name=\"a\"") "1" LAST "\r\n--B\r\nx", "[a:1]" },
	{ "no parts", MULTI, "--B--", "" },
	{ "blanks behind a boundary", MULTI,
	    "--B \t\r\nContent-Disposition: form-data; name=a\r\n\r\n1" LAST,
	    "[a:1]" },
	{ "file", MULTI,
	    "--B\r\nContent-Type: image/PNG; x=y\r\n"
	    "content-disposition:form-data;filename=\"a b.png\";name=\"f\""
	    "\r\nX-Other: 1\r\n\r\n1" LAST,
	    "[f<a b.png>(image/png):1]" },
	{ "empty file name", MULTI, PART("name=f; filename=\"\"") LAST,
	    "[f<>:]" },
	{ "quotes and backslashes", MULTI,
	    PART("name=\"a\\\"b;c\"; filename=\"C:\\new\\\\x\"") LAST,
	    "[a\"b;c<C:\\new\\x>:]" },
	{ "part without a name", MULTI, PART("x=y") "1" LAST, "[?:1]" },
	{ "name and file name in continuation lines", MULTI,
	    PART("\r\n name=a;\r\n\tfilename=x") "1" LAST, "[a<x>:1]" },
	{ "two names, the second in a continuation line", MULTI,
	    PART("name=a;\r\n name=b") LAST, BAD_AFTER },
	{ "boundary in quotes", "multipart/form-data;BOUNDARY=\"a b\"",
	    "--a b\r\nContent-Disposition: form-data; name=a\r\n\r\n1"
	    "\r\n--a b--",
	    "[a:1]" },

	{ "no boundary", "multipart/form-data", "--B--", BAD_AFTER },
	{ "empty boundary", "multipart/form-data; boundary=", "--B--",
	    BAD_AFTER },
	{ "two boundaries", MULTI "; boundary=B", "--B--", BAD_AFTER },
	{ "quote that is not closed", "multipart/form-data; boundary=\"B",
	    "--B--", BAD_AFTER },
	{ "nothing", MULTI, "", BAD_AFTER },
	{ "cut in a boundary", MULTI, "--B", BAD_AFTER },
	{ "cut in a head", MULTI, "--B\r\nContent-Dis", BAD_AFTER },
	{ "cut in a part", MULTI, PART("name=a") "1", "[a:1" BAD_AFTER },
	{ "cut before the last dash", MULTI, PART("name=a") "1\r\n--B-",
	    "[a:1]" BAD_AFTER },
	{ "no disposition", MULTI, "--B\r\nA: b\r\n\r\n1" LAST, BAD_AFTER },
	{ "first line of one byte", MULTI, "--B\r\n1\r\n\r\n1" LAST,
	    BAD_AFTER },
	{ "empty head", MULTI, "--B\r\n\r\n1" LAST, BAD_AFTER },
	{ "two dispositions", MULTI,
	    "--B\r\nContent-Disposition: form-data; name=a\r\n"
	    "Content-Disposition: form-data; name=b\r\n\r\n1" LAST,
	    BAD_AFTER },
	{ "another disposition", MULTI,
	    "--B\r\nContent-Disposition: attachment; name=a\r\n\r\n1" LAST,
	    BAD_AFTER },
	{ "two names", MULTI, PART("name=a; name=b") LAST, BAD_AFTER },
	{ "name whose quote is not closed", MULTI, PART("name=\"a") LAST,
	    BAD_AFTER },
	{ "LF alone", MULTI,
	    "--B\nContent-Disposition: form-data; name=a\n\n"
	    "1\n--B--\n",
	    BAD_AFTER },
	{ "LF alone in a head", MULTI,
	    "--B\r\nContent-Disposition: form-data; name=a\n\r\n1" LAST,
	    BAD_AFTER },
	{ "CR alone in a head", MULTI,
	    "--B\r\nContent-Disposition: form-data;\rname=a\r\n\r\n1" LAST,
	    BAD_AFTER },
	{ "longer boundary", MULTI, PART("name=a") "1\r\n--BB--",
	    "[a:1]" BAD_AFTER },
	{ "no form", "text/plain", "a=1", BAD_AFTER },
};

/* Appends what form_next() gives; true: more bytes are needed. */
static bool
drain(struct form *f)
{
	for (;;) {
		switch (form_next(f)) {
		case FORM_NEED:
			return true;
		case FORM_FIELD:
			assert_ok(buf_addf(
			    &out, "[%s", f->is_named ? f->name.data : "?"));
			if (f->has_file_name)
				assert_ok(
				    buf_addf(&out, "<%s>", f->file_name.data));
			if (f->type.len > 0 &&
			    strcmp(f->type.data, "text/plain") != 0)
				assert_ok(buf_addf(&out, "(%s)", f->type.data));
			assert_ok(buf_addc(&out, ':'));
			break;
		case FORM_DATA:
			assert_true(f->len > 0);
			assert_ok(buf_add(&out, f->data, f->len));
			break;
		case FORM_FIELD_END:
			assert_ok(buf_addc(&out, ']'));
			break;
		case FORM_END:
			return false;
		case FORM_BAD:
			assert_int_equal(form_next(f), FORM_BAD);
			assert_ok(buf_adds(&out, BAD_AFTER));
			return false;
		case FORM_NO_MEMORY:
			fail_msg("no memory");
		}
	}
}

static void
read_all(const char *type, const char *body, size_t len, size_t piece)
{
	struct form f;
	bool more = true;
	size_t at, n;
	char *copy;

	form_init(&f, form_kind_of(type), type);
	for (at = 0; more && at < len; at += n) {
		n = len - at < piece ? len - at : piece;
		copy = exact_copy(body + at, n);
		form_feed(&f, copy, n);
		more = drain(&f);
		/* A caller need not stop at a bad form. */
		if (!more && at + n < len) {
			form_feed(&f, "rest", 4);
			assert_int_equal(form_next(&f), FORM_BAD);
		}
		free(copy);
	}
	if (!more) {
		form_finish(&f);
		assert_int_equal(form_next(&f), FORM_BAD);
	}
	if (more) {
		form_finish(&f);
		more = drain(&f);
	}
	assert_false(more);
	form_free(&f);
}

TEST(every_body_in_pieces_of_every_size)
{
	size_t i, piece, len;

	for (i = 0; i < COUNT(rows); i++) {
		len = strlen(rows[i].body);
		for (piece = 1; piece <= len + 1; piece++) {
			out_new(1000);
			read_all(rows[i].type, rows[i].body, len, piece);
			if (strcmp(out.data, rows[i].fields) != 0)
				fail_msg("%s, by %zu: %s", rows[i].name, piece,
				    out.data);
		}
	}
}

TEST(a_name_that_is_too_long_is_data)
{
	char body[LIMIT_FORM_NAME + 10];

	memset(body, 'a', sizeof(body));
	memcpy(body + sizeof(body) - 4, "=1&b", 4);
	out_new(sizeof(body) + 100);
	read_all(URL, body, sizeof(body), 1000);
	assert_string_equal(out.data + out.len - 8, "a=1][b:]");
	assert_int_equal(strncmp(out.data, "[?:", 3), 0);
}

TEST(a_head_that_is_too_long_is_no_form)
{
	char *body = malloc(LIMIT_FORM_HEAD + 100);
	int n;

	assert_non_null(body);
	n = snprintf(body, 100, PART("name=a") "1\r\n--B\r\nX: ");
	memset(body + n, 'x', LIMIT_FORM_HEAD);
	out_new(1000);
	read_all(MULTI, body, LIMIT_FORM_HEAD + (size_t)n, 1000);
	assert_string_equal(out.data, "[a:1]" BAD_AFTER);
	free(body);
}

TEST(decoding)
{
	char text[] = "a+b%20c%2Bd%41%e4%%4%zz%00";
	size_t n = form_decode(text, sizeof(text) - 1);

	assert_int_equal(n, 16);
	assert_memory_equal(text, "a b c+dA\xe4%%4%zz\0", n);
}
