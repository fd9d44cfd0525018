/*
 * Request -> SHA-256 over its content.
 *
 * Invariant: the hashed bytes can be read back in one way only.  Each part is
 * preceded by its length or is a digest, and the spec determines the number
 * of parts.
 *
 * This file reads a body that is in a file only as it is fed, so its memory is
 * bounded, but for the canonical form of JSON.
 */
#include "config.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cginame.h"
#include "digest.h"
#include "form.h"
#include "key_search.h"
#include "limit.h"
#include "media.h"
#include "fingerprint.h"

enum feed {
	FEED_BEGIN,
	FEED_SEARCH, /* the body is fed to find members that are the key */
	FEED_FORM,   /* the body is fed as a form */
	FEED_EXACT,  /* the body is fed as bytes */
	FEED_DONE
};

struct fingerprint {
	const struct request *req;
	const struct json *json; /* the body, or NULL */
	const char *key;
	struct fingerprint_spec spec;
	enum feed state;
	struct digest md;
	struct buf type; /* media type of the body */
	uint64_t fed;    /* bytes, in this state */

	struct key_search search;
	bool searching;
	/* The parts of alternatives that are the key. */
	const struct conf_source *is_key[2 * LIMIT_KEY_FROM];
	size_t nkeys;

	struct form form;
	struct digest form_md, part_md;
	bool skipping; /* the current field is the key */
	uint64_t fields;
};

/* --- what is hashed --------------------------------------------------- */

/* Hashes a field: its name, the number of its values, each value. */
static enum rc
hash_field(struct digest *md, const struct request *req, const char *name)
{
	char variable[1024];

	if (cginame_variable(name, variable, sizeof(variable)) != RC_OK)
		return RC_VERSION;
	digest_text(md, name);
	digest_count(md, request_count(req, variable));
	for (size_t i = 0; i < req->nparams; i++)
		if (strcmp(req->params[i].name, variable) == 0)
			digest_text(md, req->params[i].value);
	return RC_OK;
}

/* --- what is left out -------------------------------------------------- */

static bool
is_key(const struct fingerprint *fp, enum conf_source_kind kind,
    const struct form *form)
{
	size_t i;

	for (i = 0; i < fp->nkeys; i++)
		if (fp->is_key[i]->kind == kind &&
		    form_has_name(form, fp->is_key[i]->name))
			return true;
	return false;
}

/* The search is complete: notes the members that are the key. */
static void
note_keys(struct fingerprint *fp)
{
	const struct conf_key_from *keys = &fp->spec.keys;
	unsigned j;
	size_t i;

	for (i = 0; i < keys->n; i++) {
		if (!key_search_has(&fp->search, i, fp->key))
			continue;
		for (j = 0; j < keys->item[i].n; j++)
			fp->is_key[fp->nkeys++] = &keys->item[i].part[j];
	}
}

/* Appends the query without the parameters that are the key. */
static enum rc
add_query(struct fingerprint *fp, struct form *form, struct buf *out)
{
	enum form_event event = FORM_NEED;
	bool skipping = false, first = true;

	while (event != FORM_END) {
		event = form_next(form);
		if (event == FORM_NEED)
			form_finish(form);
		else if (event == FORM_NO_MEMORY)
			return RC_NOMEM;
		else if (event == FORM_FIELD) {
			skipping = is_key(fp, CONF_FROM_QUERY, form);
			if (skipping)
				continue;
			if (!first)
				buf_addc(out, '&');
			first = false;
			buf_add(out, form->raw.data, form->raw.len);
		} else if (event == FORM_DATA && !skipping)
			buf_add(out, form->data, form->len);
	}
	return out->rc;
}

static enum rc
hash_query(struct fingerprint *fp)
{
	const char *query = fp->req->query;
	struct form form;
	struct buf out;
	enum rc rc;

	if (fp->nkeys == 0) {
		digest_text(&fp->md, query);
		return RC_OK;
	}
	buf_init(&out, strlen(query));
	form_init(&form, FORM_URLENCODED, NULL);
	form_feed(&form, query, strlen(query));
	if ((rc = add_query(fp, &form, &out)) == RC_OK)
		digest_part(&fp->md, out.data, out.len);
	form_free(&form);
	buf_free(&out);
	return rc;
}

/* --- the body ---------------------------------------------------------- */

bool
fingerprint_needs_json(const struct request *req, const char *fingerprint_spec)
{
	const char *type = request_param(req, "CONTENT_TYPE");

	if (req->body_len == 0 || strncmp(fingerprint_spec, "2 ", 2) != 0)
		return false;
	return (type != NULL && media_is_json(type)) ||
	    strstr(fingerprint_spec, "json:") != NULL;
}

/* The pointers that the fingerprint spec ignores, and those to a key. */
static enum rc
all_ignored(struct fingerprint *fp, struct conf_list *out)
{
	const struct conf_list *ignore = &fp->spec.ignore;
	size_t i;

	*out = (struct conf_list){ .item = calloc(ignore->n + fp->nkeys + 1,
				       sizeof(*out->item)) };
	if (out->item == NULL)
		return RC_NOMEM;
	for (i = 0; i < ignore->n; i++)
		out->item[out->n++] = ignore->item[i];
	for (i = 0; i < fp->nkeys; i++)
		if (fp->is_key[i]->kind == CONF_FROM_JSON)
			memcpy(&out->item[out->n++], &fp->is_key[i]->name,
			    sizeof(*out->item));
	return RC_OK;
}

static enum rc
hash_json(struct fingerprint *fp)
{
	struct conf_list ignore;
	struct buf canonical;
	enum rc rc;

	if ((rc = all_ignored(fp, &ignore)) != RC_OK)
		return rc;
	buf_init(&canonical, fp->req->body_len);
	rc = json_canonical(fp->json, &ignore, &canonical);
	digest_text(&fp->md, "json");
	digest_part(&fp->md, canonical.data, canonical.len);
	free(ignore.item);
	buf_free(&canonical);
	return rc;
}

/* An urlencoded form counts as its bytes, a part of a multipart body by what
 * its head means. */
static void
hash_field_head(struct fingerprint *fp)
{
	const struct form *f = &fp->form;
	struct digest *md = &fp->form_md;

	if (fp->form.kind == FORM_URLENCODED) {
		digest_bytes(md, "&", fp->fields > 0);
		digest_bytes(md, f->raw.data, f->raw.len);
		return;
	}
	digest_count(md, f->is_named);
	digest_part(md, f->name.data, f->name.len);
	digest_count(md, f->has_file_name);
	digest_part(md, f->file_name.data, f->file_name.len);
	digest_part(md, f->type.data, f->type.len);
	digest_begin(&fp->part_md);
}

/* RC_OK, RC_NOMEM, or RC_NOTFOUND: it is no form. */
static enum rc
hash_fields(struct fingerprint *fp)
{
	const bool parts = fp->form.kind == FORM_MULTIPART;

	for (;;) {
		switch (form_next(&fp->form)) {
		case FORM_FIELD:
			fp->skipping = is_key(fp, CONF_FROM_FORM, &fp->form);
			if (fp->skipping)
				break;
			hash_field_head(fp);
			fp->fields++;
			break;
		case FORM_DATA:
			if (!fp->skipping)
				digest_bytes(
				    parts ? &fp->part_md : &fp->form_md,
				    fp->form.data, fp->form.len);
			break;
		case FORM_FIELD_END:
			if (!fp->skipping && parts)
				digest_nested(&fp->form_md, &fp->part_md);
			break;
		case FORM_NEED:
		case FORM_END:
			return RC_OK;
		case FORM_BAD:
			return RC_NOTFOUND;
		case FORM_NO_MEMORY:
			return RC_NOMEM;
		}
	}
}

static enum rc
end_form(struct fingerprint *fp)
{
	enum rc rc;

	form_finish(&fp->form);
	if ((rc = hash_fields(fp)) != RC_OK)
		return rc;
	digest_text(
	    &fp->md, fp->form.kind == FORM_MULTIPART ? "parts" : "fields");
	digest_count(&fp->md, fp->fields);
	digest_nested(&fp->md, &fp->form_md);
	return RC_OK;
}

/* --- the states -------------------------------------------------------- */

static enum rc
begin_exact(struct fingerprint *fp)
{
	fp->state = FEED_EXACT;
	fp->fed = 0;
	digest_text(&fp->md, "exact");
	digest_count(&fp->md, fp->req->body_len);
	return RC_PENDING;
}

/* Whether the body counts as a form.  An urlencoded one counts as bytes where
 * no field of it can be the key. */
static enum form_kind
counts_as(const struct fingerprint *fp)
{
	const struct conf_key_from *keys = &fp->spec.keys;
	const char *type = request_param(fp->req, "CONTENT_TYPE");
	enum form_kind kind = form_kind_of(type);
	unsigned j;
	size_t i;

	if (fp->spec.how != CONF_FINGERPRINT_VALUE)
		return FORM_NONE;
	if (kind != FORM_URLENCODED)
		return kind;
	for (i = 0; i < keys->n; i++)
		for (j = 0; j < keys->item[i].n; j++)
			if (keys->item[i].part[j].kind == CONF_FROM_FORM)
				return kind;
	return FORM_NONE;
}

static enum rc
begin_body(struct fingerprint *fp)
{
	enum form_kind kind = counts_as(fp);

	fp->state = FEED_DONE;
	if (fp->spec.how == CONF_FINGERPRINT_NONE)
		return RC_OK;
	if (fp->spec.how == CONF_FINGERPRINT_VALUE &&
	    media_is_json(fp->type.data))
		return fp->json != NULL ? hash_json(fp) : begin_exact(fp);
	if (kind == FORM_NONE)
		return begin_exact(fp);
	form_init(&fp->form, kind, request_param(fp->req, "CONTENT_TYPE"));
	fp->state = FEED_FORM;
	fp->fields = fp->fed = 0;
	digest_begin(&fp->form_md);
	return RC_PENDING;
}

static enum rc
hash_head(struct fingerprint *fp)
{
	const struct conf_list *headers = &fp->spec.headers;
	enum rc rc = RC_OK;

	digest_text(&fp->md, fp->req->method);
	digest_text(&fp->md, fp->req->path);
	if (fp->spec.how != CONF_FINGERPRINT_NONE) {
		rc = hash_query(fp);
		digest_part(&fp->md, fp->type.data, fp->type.len);
	}
	for (size_t i = 0; i < headers->n && rc == RC_OK; i++)
		rc = hash_field(&fp->md, fp->req, headers->item[i]);
	return rc == RC_OK ? begin_body(fp) : rc;
}

static enum rc
begin_search(struct fingerprint *fp)
{
	const struct request *req = fp->req;
	enum rc rc;

	if (fp->spec.keys.n == 0)
		return hash_head(fp);
	fp->searching = true;
	rc = key_search_init(
	    &fp->search, &fp->spec.keys, CONF_SYNTAX_ANY, req, NULL);
	if (rc != RC_OK)
		return rc;
	switch (key_search_needs(&fp->search, true)) {
	case KEY_NEEDS_FORM:
		fp->state = FEED_SEARCH;
		fp->fed = 0;
		return RC_PENDING;
	case KEY_NEEDS_JSON:
		rc = key_search_json(&fp->search, fp->json);
		break;
	case KEY_NEEDS_NOTHING:
		break;
	}
	note_keys(fp);
	return rc == RC_OK ? hash_head(fp) : rc;
}

enum rc
fingerprint_new(struct fingerprint **out, const struct request *req,
    const struct json *json, const char *fingerprint_spec, const char *key)
{
	const char *type = request_param(req, "CONTENT_TYPE");
	struct fingerprint *fp = calloc(1, sizeof(*fp));
	enum rc rc;

	*out = fp;
	if (fp == NULL)
		return RC_NOMEM;
	fp->req = req;
	fp->json = json;
	fp->key = key;
	buf_init(&fp->type, LIMIT_PARAMS);
	form_init(&fp->form, FORM_NONE, NULL);
	rc = fingerprint_spec_read(fingerprint_spec, &fp->spec);
	if (rc == RC_OK && type != NULL)
		rc = media_type(type, strlen(type), &fp->type);
	digest_begin(&fp->md);
	return rc;
}

void
fingerprint_free(struct fingerprint *fp)
{
	if (fp == NULL)
		return;
	fingerprint_spec_free(&fp->spec);
	if (fp->searching)
		key_search_free(&fp->search);
	form_free(&fp->form);
	buf_free(&fp->type);
	free(fp);
}

enum rc
fingerprint_next(struct fingerprint *fp)
{
	enum rc rc;

	/* The body was read whole. */
	if (fp->state != FEED_BEGIN && fp->state != FEED_DONE &&
	    fp->fed != fp->req->body_len)
		return RC_IO;
	switch (fp->state) {
	case FEED_BEGIN:
		return begin_search(fp);
	case FEED_SEARCH:
		rc = key_search_end(&fp->search);
		note_keys(fp);
		return rc == RC_OK ? hash_head(fp) : rc;
	case FEED_FORM:
		rc = end_form(fp);
		fp->state = FEED_DONE;
		return rc == RC_NOTFOUND ? begin_exact(fp) : rc;
	case FEED_EXACT:
		fp->state = FEED_DONE;
		return RC_OK;
	case FEED_DONE:
		return RC_OK;
	}
	assert(!"a state");
	return RC_INVALID;
}

enum rc
fingerprint_feed(struct fingerprint *fp, const void *bytes, size_t n)
{
	enum rc rc;

	fp->fed += n;
	switch (fp->state) {
	case FEED_SEARCH:
		return key_search_feed(&fp->search, bytes, n);
	case FEED_FORM:
		form_feed(&fp->form, bytes, n);
		rc = hash_fields(fp);
		return rc == RC_NOTFOUND ? RC_OK : rc;
	case FEED_EXACT:
		digest_bytes(&fp->md, bytes, n);
		return RC_OK;
	case FEED_BEGIN:
	case FEED_DONE:
		break;
	}
	assert(!"fingerprint_next() has asked for the body");
	return RC_INVALID;
}

void
fingerprint_end(struct fingerprint *fp, unsigned char out[FINGERPRINT_LEN])
{
	assert(fp->state == FEED_DONE);
	digest_end(&fp->md, out);
}
