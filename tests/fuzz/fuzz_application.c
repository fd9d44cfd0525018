/*
 * fcgi_client: whatever an application sends, and wherever it is cut, the
 * output, the errors and the end are the same.
 *
 * The first byte of the input is the size of the pieces, the rest is the
 * connection.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi.h"

static void
must(bool ok)
{
	if (!ok)
		abort();
}

static void
feed(const uint8_t *data, size_t size, size_t max, struct buf *trace)
{
	enum fcgi_client_event event = FCGI_CLIENT_MORE;
	struct fcgi_client c;
	size_t at = 0, n, used;

	fcgi_client_init(&c);
	while (at < size && !c.over) {
		n = size - at < max ? size - at : max;
		event = fcgi_client_feed(&c, data + at, n, &used);
		must(used > 0 && used <= n);
		at += used;
		if (event != FCGI_CLIENT_STDOUT && event != FCGI_CLIENT_STDERR)
			continue;
		must(c.len > 0 && c.bytes >= data &&
		    c.bytes + c.len <= data + at);
		for (size_t i = 0; i < c.len; i++)
			must(buf_addf(trace, "%d%c", event, c.bytes[i]) ==
			    RC_OK);
	}
	must(buf_addf(trace, "%d %u %d %s", event == FCGI_CLIENT_END,
		 (unsigned)c.status, c.refused,
		 event == FCGI_CLIENT_ERROR ? c.why : "") == RC_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, cut;

	if (size < 1 || size > 1 << 16)
		return 0;
	buf_init(&whole, 1 << 24);
	buf_init(&cut, 1 << 24);
	feed(data + 1, size - 1, size, &whole);
	feed(data + 1, size - 1, data[0] % 16 + 1, &cut);
	must(
	    whole.len == cut.len && memcmp(whole.data, cut.data, cut.len) == 0);
	buf_free(&whole);
	buf_free(&cut);
	return 0;
}
