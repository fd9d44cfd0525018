/*
 * See findings.h.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "words.h"
#include "findings.h"

void
findings_add(
    struct findings *f, const char *name, bool ok, const char *format, ...)
{
	struct store_finding *item;
	va_list ap;

	if (f->n == f->max)
		return;
	item = &f->item[f->n++];
	item->ok = ok;
	snprintf(item->name, sizeof(item->name), "%s", name);
	va_start(ap, format);
	vsnprintf(item->text, sizeof(item->text), format, ap);
	va_end(ap);
}

void
findings_bodies(struct findings *f, enum rc rc, const struct findings_bodies *n)
{
	if (rc != RC_OK)
		findings_add(f, "bodies", false, "cannot be counted");
	else if (n->orphans != 0 || n->missing != 0)
		findings_add(f, "bodies", false,
		    "%" PRId64 " without a key, %" PRId64
		    " keys without their body",
		    n->orphans, n->missing);
	else
		findings_add(f, "bodies", true, "each belongs to its key");
}

/* The stored request must be erased once the outcome is known. */
void
findings_requests(
    struct findings *f, enum rc rc, const struct findings_requests *n)
{
	if (rc != RC_OK)
		findings_add(f, "requests", false, "cannot be counted");
	else if (n->missing != 0)
		findings_add(f, "requests", false,
		    "%" PRId64 " of accepted keys are not there", n->missing);
	else if (n->orphans != 0)
		findings_add(f, "requests", false,
		    "%" PRId64 " kept for keys that are settled or gone",
		    n->orphans);
	else if (n->pieces != 0 || n->cut != 0)
		findings_add(f, "requests", false,
		    "bodies without a request: %" PRId64
		    ", requests without all of their body: %" PRId64,
		    n->pieces, n->cut);
	else if (n->wrong != 0)
		findings_add(f, "requests", false,
		    "their bytes are counted wrong, by %" PRId64, n->wrong);
	else
		findings_add(f, "requests", true,
		    "none is kept for longer than it is needed");
}

void
findings_row(struct findings_rows *rows, const char *table, int64_t id)
{
	char name[64];
	int n;

	rows->bad++;
	n = snprintf(name, sizeof(name), "%s%s %" PRId64,
	    rows->len > 0 ? ", " : "", table, id);
	if (rows->len + (size_t)n >= sizeof(rows->names))
		return; /* the first one is enough */
	memcpy(rows->names + rows->len, name, (size_t)n + 1);
	rows->len += (size_t)n;
}

void
findings_rows(struct findings *f, enum rc rc, const struct findings_rows *rows)
{
	if (rc != RC_OK)
		findings_add(
		    f, "rows", false, "cannot be read: %s", rc_text(rc));
	else if (rows->bad > 0)
		findings_add(f, "rows", false, "%" PRId64 " %s: %s", rows->bad,
		    PLURAL(rows->bad, "makes no sense, and is skipped",
			"make no sense, and are skipped"),
		    rows->names);
	else
		findings_add(f, "rows", true, "all make sense");
}

void
findings_leases(struct findings *f, enum rc rc, int64_t dead)
{
	if (rc != RC_OK)
		findings_add(f, "leases", false,
		    "cannot tell which processes live: %s", rc_text(rc));
	else if (dead > 0)
		findings_add(f, "leases", false,
		    "%" PRId64 " held by processes that are gone: "
		    "\"oncectl sweep\" settles %s, or says what is waited for",
		    dead, PLURAL(dead, "it", "them"));
	else
		findings_add(f, "leases", true, "all held by living processes");
}

void
findings_open(struct findings *f, enum rc rc, const struct findings_open *n)
{
	if (rc != RC_OK) {
		findings_add(f, "unknown", false, "keys cannot be counted");
		return;
	}
	if (n->unattended > 0)
		findings_add(f, "unknown", false,
		    "%" PRId64 " %s that no program reconciles: \"oncectl ls "
		    "--state unknown\" lists, \"oncectl resolve\" settles %s",
		    n->unattended, PLURAL(n->unattended, "key", "keys"),
		    PLURAL(n->unattended, "it", "them"));
	else
		findings_add(f, "unknown", true, "none without a reconciler");
	findings_add(f, "reconcile", true, "%" PRId64 " %s for a next try",
	    n->waiting, PLURAL(n->waiting, "key waits", "keys wait"));
	if (n->dead > 0)
		findings_add(f, "dead_letter", false,
		    "%" PRId64 " %s that reconciliation gave up: \"oncectl "
		    "resolve\" settles %s",
		    n->dead, PLURAL(n->dead, "key", "keys"),
		    PLURAL(n->dead, "it", "them"));
	else
		findings_add(f, "dead_letter", true, "none");
}

void
findings_outbox(struct findings *f, enum rc rc, int64_t pending, int64_t dead)
{
	if (rc != RC_OK)
		findings_add(f, "outbox", false, "cannot be counted");
	else if (dead > 0)
		findings_add(f, "outbox", false,
		    "%" PRId64 " %s given up: \"oncectl outbox ls --state "
		    "dead_letter\" lists, \"outbox retry\" or \"outbox "
		    "drop\" settles %s",
		    dead, PLURAL(dead, "effect that was", "effects that were"),
		    PLURAL(dead, "it", "them"));
	else
		findings_add(f, "outbox", true,
		    "%" PRId64 " %s to be delivered, none given up", pending,
		    PLURAL(pending, "effect", "effects"));
}

void
findings_effects(
    struct findings *f, enum rc rc, const struct findings_effects *n)
{
	if (rc != RC_OK)
		findings_add(f, "effects", false, "cannot be counted");
	else if (n->orphans != 0 || n->stalled != 0 || n->payloads != 0 ||
	    n->missing != 0)
		findings_add(f, "effects", false,
		    "%" PRId64 " without a key, %" PRId64
		    " whose key has no turn, or two, %" PRId64
		    " without a payload; payloads too many: %" PRId64,
		    n->orphans, n->stalled, n->missing, n->payloads);
	else
		findings_add(f, "effects", true,
		    "each has what belongs to it, and its turn");
}

/* Effects of a topic without a section are not delivered. */
void
findings_topic(struct findings_topics *t, const struct conf *conf,
    const char *name, int64_t effects, bool configured)
{
	if (conf != NULL)
		configured = conf_effect_find(conf, name) != NULL;
	if (configured)
		return;
	t->effects += effects;
	if (t->len < sizeof(t->names))
		t->len += (size_t)snprintf(t->names + t->len,
		    sizeof(t->names) - t->len, "%s%s", t->len > 0 ? " " : "",
		    name);
}

void
findings_topics(struct findings *f, enum rc rc, const struct findings_topics *t)
{
	if (rc != RC_OK)
		findings_add(f, "topics", false, "cannot be counted");
	else if (t->effects > 0)
		findings_add(f, "topics", false,
		    "%" PRId64 " %s for an [effect] section that there is "
		    "not: %s",
		    t->effects,
		    PLURAL(t->effects, "effect waits", "effects wait"),
		    t->names);
	else
		findings_add(
		    f, "topics", true, "whatever is pending has a section");
}
