/*
 * Request -> SHA-256 over its content.
 *
 * A recipe is lines of text, the first of which names its version:
 *
 *	1 json			or "1 exact": how the body counts
 *	h content-language	a field that counts
 *	i /meta/time		a JSON Pointer to a value that does not count
 *
 * Each line ends with a line feed.  The lines with h come before those with i.
 * They are sorted, and none comes twice, so the order of the configuration
 * does not matter.  A recipe of version 1 means the same for ever, because
 * living keys have been made by it; a change of the hashed content needs a new
 * version.
 *
 * Invariant: the hashed bytes can be read back in one way only.  Each part is
 * preceded by its length, and the recipe determines the number of parts.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>

#include "cginame.h"
#include "conf_value.h"
#include "limit.h"
#include "json.h"
#include "fingerprint.h"

/* The size of a field name's CGI variable; a recipe refuses longer names. */
#define VARIABLE_SIZE 1024

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* --- the recipe: written ---------------------------------------------- */

static int
order_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
order_name(const void *a, const void *b)
{
	return strcasecmp(*(char *const *)a, *(char *const *)b);
}

static enum rc
add_line(struct buf *out, char kind, const char *text, bool fold)
{
	enum rc rc = buf_addf(out, "%c ", kind);

	if (*text == '\0' || strchr(text, '\n') != NULL)
		return RC_INVALID;
	for (; rc == RC_OK && *text != '\0'; text++)
		rc = buf_addc(out, fold ? lower(*text) : *text);
	return rc == RC_OK ? buf_addc(out, '\n') : rc;
}

/* Adds a line for each item, sorted, none twice. */
static enum rc
add_lines(struct buf *out, char kind, const struct conf_list *list, bool fold)
{
	int (*order)(const void *, const void *) =
	    fold ? order_name : order_text;
	enum rc rc = RC_OK;
	char **item;
	size_t i;

	if (list->n == 0)
		return RC_OK;
	item = calloc(list->n, sizeof(*item));
	if (item == NULL)
		return RC_NOMEM;
	memcpy(item, list->item, list->n * sizeof(*item));
	qsort(item, list->n, sizeof(*item), order);
	for (i = 0; i < list->n && rc == RC_OK; i++)
		if (i == 0 || order(&item[i - 1], &item[i]) != 0)
			rc = add_line(out, kind, item[i], fold);
	free(item);
	return rc;
}

enum rc
fingerprint_recipe(const struct conf_route *route, struct buf *out)
{
	bool json = route->fingerprint == CONF_FINGERPRINT_JSON;
	char variable[VARIABLE_SIZE];
	enum rc rc = RC_OK;
	size_t i;

	buf_clear(out);
	for (i = 0; i < route->fingerprint_headers.n && rc == RC_OK; i++)
		rc = cginame_variable(route->fingerprint_headers.item[i],
		    variable, sizeof(variable));
	if (rc == RC_OK)
		rc = buf_adds(out, json ? "1 json\n" : "1 exact\n");
	if (rc == RC_OK)
		rc = add_lines(out, 'h', &route->fingerprint_headers, true);
	/* Ignored values make no difference to exact bytes. */
	if (rc == RC_OK && json)
		rc = add_lines(out, 'i', &route->fingerprint_ignore, false);
	if (rc != RC_OK)
		buf_clear(out);
	return rc;
}

/* --- the recipe: read ------------------------------------------------- */

struct recipe {
	bool json;
	struct conf_list headers, ignore; /* items point into text */
	char *text;
};

static void
recipe_free(struct recipe *r)
{
	free(r->headers.item);
	free(r->ignore.item);
	free(r->text);
}

/* Cuts the next line off *p; NULL if it has no end. */
static char *
next_line(char **p)
{
	char *line = *p, *end = strchr(line, '\n');

	if (end == NULL)
		return NULL;
	*end = '\0';
	*p = end + 1;
	return line;
}

static bool
read_line(struct recipe *r, char *line)
{
	struct conf_list *list;

	if (strncmp(line, "h ", 2) == 0 && line[2] != '\0')
		list = &r->headers;
	else if (strncmp(line, "i ", 2) == 0 && conf_value_is_pointer(line + 2))
		list = &r->ignore;
	else
		return false;
	if (list->n == LIMIT_CONF_LIST)
		return false;
	assert(list->item != NULL); /* recipe_read() has counted this line */
	list->item[list->n++] = line + 2;
	return true;
}

static enum rc
recipe_read(struct recipe *r, const char *text)
{
	char *p, *line;
	size_t n = 0;

	*r = (struct recipe){ .text = strdup(text) };
	if (r->text == NULL)
		return RC_NOMEM;
	for (p = r->text; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	if (n > 1) { /* the first line is no item */
		r->headers.item = calloc(n, sizeof(char *));
		r->ignore.item = calloc(n, sizeof(char *));
		if (r->headers.item == NULL || r->ignore.item == NULL)
			return RC_NOMEM;
	}
	p = r->text;
	line = next_line(&p);
	if (line == NULL)
		return RC_VERSION;
	r->json = strcmp(line, "1 json") == 0;
	if (!r->json && strcmp(line, "1 exact") != 0)
		return RC_VERSION;
	while (*p != '\0') {
		line = next_line(&p);
		if (line == NULL || !read_line(r, line))
			return RC_VERSION;
	}
	return RC_OK;
}

/* --- what is hashed --------------------------------------------------- */

/* Fetched once: EVP_sha256() makes libcrypto fetch it at each use. */
static const EVP_MD *
sha256(void)
{
	static _Atomic(EVP_MD *) kept;
	EVP_MD *md = atomic_load(&kept), *other = NULL;

	if (md != NULL)
		return md;
	md = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (md == NULL || atomic_compare_exchange_strong(&kept, &other, md))
		return md;
	EVP_MD_free(md);
	return other;
}

static enum rc
hash_count(EVP_MD_CTX *md, uint64_t n)
{
	unsigned char be[8];
	size_t i;

	for (i = 0; i < sizeof(be); i++)
		be[i] = (unsigned char)(n >> (56 - 8 * i));
	/* libcrypto's digests fail only when there is no memory. */
	return EVP_DigestUpdate(md, be, sizeof(be)) == 1 ? RC_OK : RC_NOMEM;
}

static enum rc
hash_part(EVP_MD_CTX *md, const void *bytes, size_t n)
{
	enum rc rc = hash_count(md, n);

	if (rc == RC_OK && n > 0 && EVP_DigestUpdate(md, bytes, n) != 1)
		rc = RC_NOMEM;
	return rc;
}

static enum rc
hash_text(EVP_MD_CTX *md, const char *s)
{
	return hash_part(md, s, strlen(s));
}

/* Hashes a field: its name, the number of its values, each value. */
static enum rc
hash_field(EVP_MD_CTX *md, const struct request *req, const char *name)
{
	char variable[VARIABLE_SIZE];
	enum rc rc;
	size_t i;

	if (cginame_variable(name, variable, sizeof(variable)) != RC_OK)
		return RC_VERSION;
	rc = hash_text(md, name);
	if (rc == RC_OK)
		rc = hash_count(md, request_count(req, variable));
	for (i = 0; i < req->nparams && rc == RC_OK; i++)
		if (strcmp(req->params[i].name, variable) == 0)
			rc = hash_text(md, req->params[i].value);
	return rc;
}

/* CONTENT_TYPE in lower case, without parameters and outer blanks. */
static enum rc
media_type(const struct request *req, struct buf *out)
{
	const char *s = request_param(req, "CONTENT_TYPE");
	enum rc rc = RC_OK;
	size_t i, n;

	if (s == NULL)
		return RC_OK;
	s += strspn(s, " \t");
	n = strcspn(s, ";");
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	for (i = 0; i < n && rc == RC_OK; i++)
		rc = buf_addc(out, lower(s[i]));
	return rc;
}

static bool
is_json(const struct buf *type)
{
	static const char suffix[] = "+json"; /* RFC 6839, section 3.1 */
	size_t n = sizeof(suffix) - 1;

	return strcmp(type->data, "application/json") == 0 ||
	    (type->len > n && strcmp(type->data + type->len - n, suffix) == 0);
}

size_t
fingerprint_cost(const struct request *req, const char *text)
{
	struct buf type;
	size_t cost = 0;

	if (strncmp(text, "1 json\n", 7) != 0 || req->body_len == 0)
		return 0;
	buf_init(&type, LIMIT_PARAMS);
	if (media_type(req, &type) != RC_OK || is_json(&type))
		cost = json_cost(req->body_len);
	buf_free(&type);
	assert(cost <= LIMIT_JSON_MEMORY);
	return cost;
}

static enum rc
hash_body(EVP_MD_CTX *md, const struct request *req, const struct recipe *r,
    const struct buf *type)
{
	struct buf canonical;
	enum json_verdict v = JSON_NOT_IJSON;
	enum rc rc = RC_OK;

	if (req->body_len > 0 && req->body == NULL)
		return RC_IO;
	buf_init(&canonical, req->body_len);
	if (r->json && is_json(type))
		v = json_canonical(
		    req->body, req->body_len, &r->ignore, &canonical);
	switch (v) {
	case JSON_OK:
		rc = hash_text(md, "json");
		if (rc == RC_OK)
			rc = hash_part(md, canonical.data, canonical.len);
		break;
	case JSON_NOT_IJSON:
		rc = hash_text(md, "exact");
		if (rc == RC_OK)
			rc = hash_part(md, req->body, req->body_len);
		break;
	case JSON_NO_MEMORY:
		rc = RC_NOMEM;
		break;
	}
	buf_free(&canonical);
	return rc;
}

static enum rc
hash_request(EVP_MD_CTX *md, const struct request *req, const struct recipe *r)
{
	struct buf type;
	enum rc rc;
	size_t i;

	buf_init(&type, LIMIT_PARAMS);
	rc = media_type(req, &type);
	if (rc == RC_OK)
		rc = hash_text(md, req->method);
	if (rc == RC_OK)
		rc = hash_text(md, req->path);
	if (rc == RC_OK)
		rc = hash_text(md, req->query);
	if (rc == RC_OK)
		rc = hash_part(md, type.data, type.len);
	for (i = 0; i < r->headers.n && rc == RC_OK; i++)
		rc = hash_field(md, req, r->headers.item[i]);
	if (rc == RC_OK)
		rc = hash_body(md, req, r, &type);
	buf_free(&type);
	return rc;
}

enum rc
fingerprint_make(const struct request *req, const char *text,
    unsigned char out[FINGERPRINT_LEN])
{
	struct recipe recipe;
	const EVP_MD *type;
	EVP_MD_CTX *md = NULL;
	enum rc rc;

	rc = recipe_read(&recipe, text);
	if (rc != RC_OK)
		goto out;
	type = sha256();
	md = EVP_MD_CTX_new();
	if (type == NULL || md == NULL ||
	    EVP_DigestInit_ex(md, type, NULL) != 1) {
		rc = RC_NOMEM;
		goto out;
	}
	assert(EVP_MD_CTX_get_size(md) == FINGERPRINT_LEN);
	rc = hash_request(md, req, &recipe);
	if (rc == RC_OK && EVP_DigestFinal_ex(md, out, NULL) != 1)
		rc = RC_NOMEM;
out:
	EVP_MD_CTX_free(md);
	recipe_free(&recipe);
	return rc;
}
