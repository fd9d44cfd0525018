/*
 * cgistatus: what a web server makes of the beginning of an output.
 */
#include "config.h"

#include "cases.h"

#include "cgistatus.h"

static const struct {
	const char *output;
	int status;
} rows[] = {
	{ "Content-Type: text/plain\r\n\r\nhello", 200 },
	{ "Content-Type: text/plain\n\nhello", 200 },
	{ "Status: 404 Not Found\r\nContent-Type: a/b\r\n\r\n", 404 },
	{ "content-type: a/b\nSTATUS:201\n\n", 201 },
	{ "Status:\t 503\n\n", 503 },
	{ "Location: https://example.org/\n\n", 302 },
	{ "Location: https://example.org/\nStatus: 303\n\n", 303 },
	{ "Location: /local\n\n", 200 },
	{ "HTTP/1.1 418 I am a teapot\r\nContent-Type: a/b\r\n\r\n", 418 },
	{ "HTTP/1.0 202 Accepted\nStatus: 200 OK\n\n", 200 },
	{ "Content-Type: a/b\n\nStatus: 500\n\n", 200 },
	{ "Status-Text: 404\n\n", 200 },
	/* no end of the head, or no head */
	{ "", 0 },
	{ "\n", 0 },
	{ "Status: 404\n", 0 },
	{ "Status: 404", 0 },
	{ "no head\n\n", 0 },
	{ "Content-Type: a/b\nno field\n\n", 0 },
	/* no status in it: what follows is the server's choice */
	{ "Status: x\nContent-Type: a/b\n\n", 200 },
	{ "Status: 40\n\n", 200 },
	{ "Status:\n\n", 200 },
	{ "Location:\n\n", 200 },
};

TEST(every_head)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t n = strlen(rows[i].output);
		/* without a byte behind it, for the sanitizers */
		char *output = malloc(n + 1);

		assert_non_null(output);
		memcpy(output, rows[i].output, n);
		output = realloc(output, n > 0 ? n : 1);
		assert_non_null(output);
		if (cgistatus_peek(output, n) != rows[i].status)
			fail_msg("\"%s\": %d", rows[i].output,
			    cgistatus_peek(output, n));
		free(output);
	}
}
