/*
 * cgicrlf: how each kind of line is ended, where the head ends, and that it
 * does not matter in which pieces the output comes.
 */
#include "config.h"

#include "cases.h"

#include "cgicrlf.h"

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
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t len = strlen(rows[i].in);

		print_message("%s\n", rows[i].name);
		for (size_t piece = 1; piece <= len; piece++) {
			struct cgicrlf c = { 0 };
			char out[128];
			size_t n = 0;

			for (size_t k = 0; k < len; k += piece) {
				size_t more = piece < len - k ? piece : len - k;

				n += cgicrlf_pass(
				    &c, rows[i].in + k, more, out + n);
			}
			out[n] = '\0';
			assert_string_equal(out, rows[i].out);
			assert_int_equal(cgicrlf_is_body(&c),
			    strstr(rows[i].out, "body") != NULL ||
				strstr(rows[i].out, "a\nb") != NULL);
			assert_int_equal(c.state == CGICRLF_REFUSED,
			    rows[i].in[0] == '\n' || rows[i].in[0] == '\r');
		}
	}
}

TEST(no_more_than_twice_as_many_bytes)
{
	struct cgicrlf c = { 0 };
	char in[64], out[2 * sizeof(in)];

	memset(in, '\n', sizeof(in));
	in[0] = 'A';
	assert_int_equal(cgicrlf_pass(&c, in, sizeof(in), out), sizeof(in) + 2);
	c = (struct cgicrlf){ 0 };
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = i % 2 == 0 ? 'A' : '\n';
	assert_int_equal(
	    cgicrlf_pass(&c, in, sizeof(in), out), sizeof(in) + sizeof(in) / 2);
	assert_false(cgicrlf_is_body(&c));
}
