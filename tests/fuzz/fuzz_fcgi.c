/*
 * fcgi: whatever arrives, and wherever it is cut, the events are the same,
 * and what they point to is there.
 *
 * The first byte of the input seeds the cuts, the rest is the connection.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi.h"
#include "limit.h"

static void
must(bool ok)
{
	if (!ok)
		abort();
}

static void
note(struct buf *trace, char what, const void *p, size_t n)
{
	must(buf_addc(trace, what) == RC_OK);
	must(buf_add(trace, &n, sizeof(n)) == RC_OK);
	must(buf_add(trace, p, n) == RC_OK);
}

static void
note_head(struct buf *trace, const struct fcgi *f)
{
	must(f->id != 0 && f->params != NULL);
	must(f->nparams <= LIMIT_PARAM_COUNT);
	note(trace, 'H', &f->id, sizeof(f->id));
	for (size_t i = 0; i < f->nparams; i++) {
		const struct param *p = &f->params[i];

		note(trace, 'n', p->name, strlen(p->name));
		note(trace, 'v', p->value, strlen(p->value));
	}
	must(buf_addc(trace, f->has_nul) == RC_OK);
	must(buf_addc(trace, f->keep_conn) == RC_OK);
}

/* Feeds in pieces of 1 to max bytes; a body's pieces are put together. */
static void
feed(const uint8_t *data, size_t size, size_t max, unsigned seed,
    struct buf *trace)
{
	struct buf body;
	struct fcgi f;
	enum fcgi_event ev = FCGI_EV_MORE;
	size_t pos = 0, n, used;

	buf_init(&body, 1 << 24);
	fcgi_init(&f);
	while (pos < size && ev != FCGI_EV_ERROR) {
		seed = seed * 1103515245 + 12345;
		n = 1 + (seed >> 8) % max;
		if (n > size - pos)
			n = size - pos;
		ev = fcgi_feed(&f, data + pos, n, &used);
		must(used <= n);
		must(ev != FCGI_EV_MORE || used == n);
		pos += used;
		if (ev != FCGI_EV_BODY && ev != FCGI_EV_MORE && body.len > 0) {
			note(trace, 'B', body.data, body.len);
			buf_clear(&body);
		}
		switch (ev) {
		case FCGI_EV_MORE:
			break;
		case FCGI_EV_HEAD:
			note_head(trace, &f);
			break;
		case FCGI_EV_BODY:
			must(f.body >= data && f.body_len > 0 &&
			    f.body + f.body_len <= data + pos);
			must(buf_add(&body, f.body, f.body_len) == RC_OK);
			break;
		case FCGI_EV_REPLY:
			must(f.reply.len > 0 && f.reply.len % 8 == 0);
			note(trace, 'R', f.reply.data, f.reply.len);
			buf_clear(&f.reply);
			break;
		case FCGI_EV_END:
		case FCGI_EV_ABORT:
			note(trace, ev == FCGI_EV_END ? 'E' : 'A', "", 0);
			fcgi_next(&f);
			must(fcgi_idle(&f));
			break;
		case FCGI_EV_ERROR:
			note(trace, 'X', f.why, strlen(f.why));
			break;
		}
	}
	note(trace, 'B', body.data, body.len);
	buf_free(&body);
	fcgi_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t max[] = { 1, 9, 300 };
	struct buf whole, cut;

	if (size < 1 || size > 1 << 20)
		return 0;
	buf_init(&whole, 1 << 26);
	buf_init(&cut, 1 << 26);
	feed(data + 1, size - 1, SIZE_MAX / 2, 0, &whole);
	for (size_t i = 0; i < sizeof(max) / sizeof(max[0]); i++) {
		buf_clear(&cut);
		feed(data + 1, size - 1, max[i], data[0], &cut);
		must(cut.len == whole.len);
		must(memcmp(cut.data, whole.data, cut.len) == 0);
	}
	buf_free(&whole);
	buf_free(&cut);
	return 0;
}
