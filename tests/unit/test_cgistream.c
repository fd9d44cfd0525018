/*
 * cgistream: how each kind of line is ended, where the head ends, and that it
 * does not matter in which pieces the output comes; what a web server makes of
 * the beginning of an output.
 */
#include "config.h"

#include "cases.h"

#include "cgistream.h"

static const struct row {
	const char *name, *in, *out;
} rows[] = {
	{ "CR LF", "A: b\r\nC: d\r\n\r\nbody", "A: b\r\nC: d\r\n\r\nbody" },
	{ "LF", "A: b\nC: d\n\nbody", "A: b\r\nC: d\r\n\r\nbody" },
	{ "CR: no empty line", "A: b\rC: d\r\rnone", "A: b\r\nC: d\r\nnone" },
	{ "CR, and CR CR LF", "A: b\rC: d\r\r\nnone", "A: b\r\nC: d\r\nnone" },
	{ "CR CR LF", "A: b\r\r\nC: d\r\r\n\r\r\nbody",
	    "A: b\r\nC: d\r\n\r\nbody" },
	{ "LF, and an empty line of CR LF", "A: b\n\r\nbody",
	    "A: b\r\n\r\nbody" },
	{ "CR LF, and an empty line of LF", "A: b\r\n\nbody",
	    "A: b\r\n\r\nbody" },
	{ "CR LF, and an empty line of CR", "A: b\r\n\rbody",
	    "A: b\r\n\r\nbody" },
	{ "the body stays as it is", "A: b\n\n\n\r\n\r\r\na\nb",
	    "A: b\r\n\r\n\n\r\n\r\r\na\nb" },
	{ "no end", "A: b\nC: d", "A: b\r\nC: d" },
	{ "no end, CR", "A: b\r", "A: b\r" },
	{ "no head", "hello", "hello" },
	{ "empty line in front, LF", "\nA: b\n\nbody", "" },
	{ "empty line in front, CR", "\rA: b\n\nbody", "" },
	{ "nothing", "", "" },
};

TEST(every_line_ends_in_crlf)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const size_t len = strlen(rows[i].in);

		print_message("%s\n", rows[i].name);
		for (size_t piece = 1; piece <= len; piece++) {
			struct cgistream c = { 0 };
			char out[128];
			size_t n = 0;

			for (size_t k = 0; k < len; k += piece) {
				size_t more = piece < len - k ? piece : len - k;

				n += cgistream_pass(
				    &c, rows[i].in + k, more, out + n);
			}
			out[n] = '\0';
			assert_string_equal(out, rows[i].out);
			assert_int_equal(cgistream_is_body(&c),
			    strstr(rows[i].out, "body") != NULL ||
				strstr(rows[i].out, "a\nb") != NULL);
			assert_int_equal(c.state == CGISTREAM_REFUSED,
			    rows[i].in[0] == '\n' || rows[i].in[0] == '\r');
		}
	}
}

TEST(no_more_than_twice_as_many_bytes)
{
	struct cgistream c = { 0 };
	char in[64], out[2 * sizeof(in)];

	memset(in, '\n', sizeof(in));
	in[0] = 'A';
	assert_int_equal(
	    cgistream_pass(&c, in, sizeof(in), out), sizeof(in) + 2);
	c = (struct cgistream){ 0 };
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = i % 2 == 0 ? 'A' : '\n';
	assert_int_equal(cgistream_pass(&c, in, sizeof(in), out),
	    sizeof(in) + sizeof(in) / 2);
	assert_false(cgistream_is_body(&c));
}

/* The head is read as test_cgihead has it. */
TEST(status_of_every_verdict)
{
	static const struct {
		const char *output;
		int status;
	} heads[] = {
		{ "Status: 404 Not Found\r\nContent-Type: a/b\r\n\r\n", 404 },
		{ "Location: https://example.org/\n\n", 302 },
		{ "HTTP/1.1 418 I am a teapot\nContent-Type: a/b\n\n", 418 },
		{ "Content-Type: a/b\n\nStatus: 500\n\n", 200 },
		{ "Status-Text: 404\n\n", 200 },
		/* no end of the head, no head, no status */
		{ "", 0 },
		{ "Status: 404\n", 0 },
		{ "no head\n\n", 0 },
		{ "Status: x\nContent-Type: a/b\n\n", 0 },
		{ "Status: 200\nStatus: 404\n\n", 0 },
	};

	for (size_t i = 0; i < COUNT(heads); i++)
		if (cgistream_status(heads[i].output,
			strlen(heads[i].output)) != heads[i].status)
			fail_msg("\"%s\"", heads[i].output);
}
