/*
 * See page_value.h.  The fields of forms are few and short but for one, so each
 * is looked for by itself, and no name of one needs an escape.  A token is the
 * time when it was made, in hexadecimal, and an HMAC-SHA-256 of that time and
 * of all that the token is bound to.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "ascii.h"
#include "date.h"
#include "digest.h"
#include "form.h"
#include "page_value.h"

enum rc
page_form_value(const struct request *rq, const char *name, struct buf *out)
{
	const bool posted = strcmp(rq->method, "POST") == 0;
	const char *p = posted ? rq->body : rq->query, *equals, *next, *end;
	enum rc rc;

	if (posted &&
	    form_kind_of(request_param(rq, "CONTENT_TYPE")) != FORM_URLENCODED)
		return RC_INVALID;
	if (p == NULL)
		return RC_OK;
	end = p + (posted ? rq->body_len : strlen(p));
	for (; p < end; p = next + 1) {
		if ((next = memchr(p, '&', (size_t)(end - p))) == NULL)
			next = end;
		equals = memchr(p, '=', (size_t)(next - p));
		if (equals == NULL || strlen(name) != (size_t)(equals - p) ||
		    memcmp(p, name, (size_t)(equals - p)) != 0)
			continue;
		rc = buf_add(out, equals + 1, (size_t)(next - equals - 1));
		if (rc != RC_OK || out->len == 0)
			return rc;
		buf_truncate(out, form_decode(out->data, out->len));
		return memchr(out->data, '\0', out->len) != NULL ? RC_INVALID
								 : RC_OK;
	}
	return RC_OK;
}

enum rc
page_form_text(
    const struct request *rq, const char *name, char *out, size_t size)
{
	struct buf text;
	enum rc rc;

	buf_init(&text, size - 1);
	rc = page_form_value(rq, name, &text);
	snprintf(out, size, "%s", rc == RC_OK ? text.data : "");
	buf_free(&text);
	return rc;
}

int64_t
page_form_number(const struct request *rq, const char *name)
{
	char text[32];
	int64_t n;

	return page_form_text(rq, name, text, sizeof(text)) == RC_OK &&
		ascii_number(text, &n)
	    ? n
	    : 0;
}

/* --- tokens --------------------------------------------------------------- */

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char purpose[] = "oncewrap: token of the operator's page\n";

static void
digest_bound(
    const struct page_token *t, int64_t made, unsigned char out[DIGEST_LEN])
{
	struct digest d;

	digest_begin(&d);
	digest_text(&d, t->user);
	digest_text(&d, t->host);
	digest_text(&d, t->act);
	digest_text(&d, t->state);
	digest_count(&d, (uint64_t)t->id);
	digest_count(&d, (uint64_t)t->life);
	digest_count(&d, (uint64_t)t->changed);
	digest_count(&d, (uint64_t)made);
	digest_end(&d, out);
}

void
page_token_make(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now,
    char out[PAGE_TOKEN_SIZE])
{
	unsigned char digest[DIGEST_LEN], mac[DIGEST_LEN];
	int n;

	digest_bound(t, now, digest);
	digest_mac_for(secret, purpose, digest, sizeof(digest), mac);
	n = snprintf(out, PAGE_TOKEN_SIZE, "%" PRIx64 "-", (uint64_t)now);
	for (size_t i = 0; i < sizeof(mac); i++)
		n += snprintf(
		    out + n, PAGE_TOKEN_SIZE - (size_t)n, "%02x", mac[i]);
}

bool
page_token_is_good(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now, const char *text)
{
	char own[PAGE_TOKEN_SIZE], *end;
	const size_t len = strlen(text);
	int64_t made;

	errno = 0;
	made = strtoll(text, &end, 16);
	if (errno != 0 || *end != '-' || made > now ||
	    made < now - PAGE_TOKEN_AGE)
		return false;
	page_token_make(t, secret, made, own);
	return len == strlen(own) && CRYPTO_memcmp(own, text, len) == 0;
}

/* --- values as text ------------------------------------------------------- */

void
page_write_age(int64_t ms, char out[PAGE_AGE_SIZE])
{
	const int64_t s = ms > 0 ? ms / 1000 : 0;

	if (s < 60)
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " s", s);
	else if (s < 3600)
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " min", s / 60);
	else if (s < 86400)
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " h %" PRId64 " min",
		    s / 3600, s / 60 % 60);
	else
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " d %" PRId64 " h",
		    s / 86400, s / 3600 % 24);
}

void
page_write_utc(int64_t wall, char out[PAGE_UTC_SIZE])
{
	char date[DATE_RFC3339_LEN + 1];

	date_put_rfc3339(wall, date);
	snprintf(out, PAGE_UTC_SIZE, "%.10s %.8s UTC", date, date + 11);
}

void
page_write_count(int64_t n, bool more, char out[PAGE_COUNT_SIZE])
{
	if (n < 0)
		snprintf(out, PAGE_COUNT_SIZE, "not counted yet");
	else
		snprintf(out, PAGE_COUNT_SIZE, "%s%" PRId64,
		    more ? "more than " : "", n);
}

void
page_write_cut(const char *text, char *out, size_t size)
{
	size_t n = size - 4;

	if (text == NULL || strlen(text) < size) {
		snprintf(out, size, "%s", text != NULL ? text : "");
		return;
	}
	/* Bytes that are no UTF-8 may be cut anywhere. */
	for (int i = 0; i < 3 && (text[n] & 0xc0) == 0x80; i++)
		n--;
	memcpy(out, text, n);
	memcpy(out + n, "...", 4);
}
