/*
 * Request -> SHA-256 over its content.
 *
 * Invariant: the hashed bytes can be read back in one way only.  Each part is
 * preceded by its length or is a digest, and the spec determines the number
 * of parts.
 *
 * The memory is bounded, but for the canonical form of JSON.
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

struct fingerprint {
	const struct fingerprint_of *of;
	struct fingerprint_spec spec;
	struct digest md;
	struct buf type; /* media type of the body */
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

/* Notes the members that are the key. */
static void
note_keys(struct fingerprint *fp, const struct key_search *search)
{
	const struct conf_key_from *keys = &fp->spec.keys;
	unsigned j;
	size_t i;

	for (i = 0; i < keys->n; i++) {
		if (!key_search_has(search, i, fp->of->key))
			continue;
		for (j = 0; j < keys->item[i].n; j++)
			fp->is_key[fp->nkeys++] = &keys->item[i].part[j];
	}
}

static enum rc
find_keys(struct fingerprint *fp)
{
	const struct request *req = fp->of->req;
	struct key_search search;
	enum rc rc;

	if (fp->spec.keys.n == 0)
		return RC_OK;
	rc = key_search_init(
	    &search, &fp->spec.keys, CONF_SYNTAX_ANY, req, NULL);
	if (rc == RC_OK) {
		switch (key_search_needs(&search, true)) {
		case KEY_NEEDS_FORM:
			rc = key_search_form(&search, req, fp->of->read);
			break;
		case KEY_NEEDS_JSON:
			rc = key_search_json(&search, fp->of->json);
			break;
		case KEY_NEEDS_NOTHING:
			break;
		}
	}
	if (rc == RC_OK)
		note_keys(fp, &search);
	key_search_free(&search);
	return rc;
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
	const char *query = fp->of->req->query;
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
	buf_init(&canonical, SIZE_MAX);
	rc = json_canonical(fp->of->json, &ignore, &canonical);
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
fingerprint_exact(void *arg, const void *bytes, size_t n)
{
	digest_bytes(arg, bytes, n);
	return RC_OK;
}

static enum rc
hash_exact(struct fingerprint *fp)
{
	const struct request *req = fp->of->req;

	digest_text(&fp->md, "exact");
	digest_count(&fp->md, req->body_len);
	return fp->of->read(req, fingerprint_exact, &fp->md);
}

static enum rc
fingerprint_form(void *arg, const void *bytes, size_t n)
{
	struct fingerprint *fp = arg;

	form_feed(&fp->form, bytes, n);
	return hash_fields(fp);
}

/* What is no form counts as bytes. */
static enum rc
hash_form(struct fingerprint *fp, enum form_kind kind)
{
	const struct request *req = fp->of->req;
	enum rc rc;

	form_init(&fp->form, kind, request_param(req, "CONTENT_TYPE"));
	digest_begin(&fp->form_md);
	if ((rc = fp->of->read(req, fingerprint_form, fp)) == RC_OK) {
		form_finish(&fp->form);
		rc = hash_fields(fp);
	}
	form_free(&fp->form);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? hash_exact(fp) : rc;
	digest_text(&fp->md, kind == FORM_MULTIPART ? "parts" : "fields");
	digest_count(&fp->md, fp->fields);
	digest_nested(&fp->md, &fp->form_md);
	return RC_OK;
}

/* Whether the body counts as a form.  An urlencoded one counts as bytes where
 * no field of it can be the key. */
static enum form_kind
counts_as(const struct fingerprint *fp)
{
	const struct conf_key_from *keys = &fp->spec.keys;
	const char *type = request_param(fp->of->req, "CONTENT_TYPE");
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
hash_body(struct fingerprint *fp)
{
	enum form_kind kind = counts_as(fp);

	if (fp->spec.how == CONF_FINGERPRINT_NONE)
		return RC_OK;
	if (fp->spec.how == CONF_FINGERPRINT_VALUE && fp->of->json != NULL &&
	    media_is_json(fp->type.data))
		return hash_json(fp);
	return kind == FORM_NONE ? hash_exact(fp) : hash_form(fp, kind);
}

static enum rc
hash_request(struct fingerprint *fp)
{
	const struct conf_list *headers = &fp->spec.headers;
	const struct request *req = fp->of->req;
	enum rc rc = find_keys(fp);

	digest_text(&fp->md, req->method);
	digest_text(&fp->md, req->path);
	if (rc == RC_OK && fp->spec.how != CONF_FINGERPRINT_NONE) {
		rc = hash_query(fp);
		digest_part(&fp->md, fp->type.data, fp->type.len);
	}
	for (size_t i = 0; i < headers->n && rc == RC_OK; i++)
		rc = hash_field(&fp->md, req, headers->item[i]);
	return rc == RC_OK ? hash_body(fp) : rc;
}

enum rc
fingerprint_make(const struct fingerprint_of *of, const char *fingerprint_spec,
    unsigned char out[FINGERPRINT_LEN])
{
	const char *type = request_param(of->req, "CONTENT_TYPE");
	struct fingerprint fp = { .of = of };
	unsigned char md[DIGEST_LEN];
	enum rc rc;

	buf_init(&fp.type, LIMIT_PARAMS);
	digest_begin(&fp.md);
	rc = fingerprint_spec_read(fingerprint_spec, &fp.spec);
	if (rc == RC_OK && type != NULL)
		rc = media_type(type, strlen(type), &fp.type);
	if (rc == RC_OK && (rc = hash_request(&fp)) == RC_OK) {
		digest_end(&fp.md, md);
		memcpy(out, md, FINGERPRINT_LEN);
	}
	fingerprint_spec_free(&fp.spec);
	buf_free(&fp.type);
	return rc;
}
