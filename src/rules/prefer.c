/*
 * The fields Prefer (RFC 7240, section 2), Accept and Accept-Language (RFC
 * 9110, sections 12.5.1 and 12.5.4) are lists of one form:
 *
 *   list      = 1#element
 *   element   = name [ BWS "=" BWS word ] *( OWS ";" [ OWS parameter ] )
 *   parameter = token [ BWS "=" BWS word ]
 *   word      = token / quoted-string
 *
 * A server may ignore any of them, so an element of another form is no error:
 * it is none that is looked for.  A field with a weight that is none is treated
 * as missing.
 */
#include "config.h"

#include <string.h>

#include "ascii.h"
#include "conf_value.h"
#include "response.h"

#include "prefer.h"

#define WEIGHT_MAX 1000

struct element {
	struct response_text name, value; /* value.p NULL: there is none */
	bool other; /* a parameter that no document of ours has */
	unsigned weight;
};

/* All fields of that name, which are one list. */
struct list {
	const struct request *request;
	const char *variable;
	size_t next;   /* of the request's parameters */
	const char *s; /* the rest of the field; NULL: there is none */
	/* a weight is none: some programs send one that looks like a browser's
	 * list, but for that */
	bool malformed;
};

/* Takes what stands before one of the characters, or the end, off the front;
 * within quotes they do not count. */
static struct response_text
prefer_until(const char **s, const char *characters)
{
	const char *const begin = *s;
	bool quoted = false;

	for (; **s != '\0' && (quoted || strchr(characters, **s) == NULL);
	     (*s)++) {
		if (**s == '"')
			quoted = !quoted;
		else if (quoted && **s == '\\' && (*s)[1] != '\0')
			(*s)++;
	}
	return response_text_trim(
	    (struct response_text){ begin, (size_t)(*s - begin) });
}

/* Takes a name, and its value if there is one, off the front. */
static struct element
prefer_member(const char **s)
{
	struct element e = { .name = prefer_until(s, "=;,"),
		.weight = WEIGHT_MAX };

	if (**s == '=') {
		++*s;
		e.value = prefer_until(s, ";,");
	}
	return e;
}

/* qvalue: RFC 9110, section 12.4.2.  False: it is none. */
static bool
parse_weight(struct response_text t, unsigned *weight)
{
	unsigned unit = WEIGHT_MAX;

	if (t.n == 0 || t.n > 5 || (*t.p != '0' && *t.p != '1') ||
	    (t.n > 1 && t.p[1] != '.'))
		return false;
	*weight = *t.p == '1' ? WEIGHT_MAX : 0;
	for (size_t i = 2; i < t.n; i++) {
		if (!ascii_is_digit(t.p[i]))
			return false;
		unit /= 10;
		*weight += (unsigned)(t.p[i] - '0') * unit;
	}
	return *weight <= WEIGHT_MAX;
}

/* False: there are no more elements. */
static bool
next_element(struct list *l, struct element *e)
{
	const struct request *rq = l->request;
	struct element p;

	/* RFC 9110, section 5.6.1.2: empty ones mean nothing. */
	while (l->s == NULL || *(l->s += strspn(l->s, " \t,")) == '\0') {
		while (l->next < rq->nparams &&
		    strcmp(rq->params[l->next].name, l->variable) != 0)
			l->next++;
		if (l->next == rq->nparams)
			return false;
		l->s = rq->params[l->next++].value;
	}
	for (*e = prefer_member(&l->s); *l->s == ';';) {
		l->s++;
		p = prefer_member(&l->s);
		if (p.name.n == 0 && p.value.p == NULL)
			continue;
		if (!response_text_is(p.name, "q"))
			e->other =
			    e->other || !response_text_is(p.name, "charset");
		else if (!parse_weight(p.value, &e->weight))
			l->malformed = true;
	}
	return true;
}

bool
prefer_respond_async(const struct request *request)
{
	struct list list = { .request = request, .variable = "HTTP_PREFER" };
	struct element e;

	while (next_element(&list, &e))
		if (response_text_is(e.name, "respond-async"))
			/* No value, or an empty one, asks; another declines. */
			return e.value.p == NULL ||
			    response_text_is(e.value, "\"\"");
	return false;
}

/* --- Accept ------------------------------------------------------------- */

/* A media type that we can send, and the weight that the client gives it. */
struct offer {
	const char *type, *range;
	unsigned precision; /* of the range that gave the weight; 0: none */
	unsigned weight;
};

/* The most precise range decides; of several the first. */
static void
weigh(struct offer *offer, const struct element *e)
{
	const unsigned precision = response_text_is(e->name, offer->type) ? 3
	    : response_text_is(e->name, offer->range)                     ? 2
	    : response_text_is(e->name, "*/*")                            ? 1
									  : 0;

	if (e->other || e->value.p != NULL || precision <= offer->precision)
		return;
	offer->precision = precision;
	offer->weight = e->weight;
}

bool
prefer_html(const struct request *request)
{
	struct list list = { .request = request, .variable = "HTTP_ACCEPT" };
	struct offer html = { "text/html", "text/*", 0, 0 };
	struct offer json = { "application/json", "application/*", 0, 0 };
	struct offer problem = { "application/problem+json", "application/*", 0,
		0 };
	struct element e;

	while (next_element(&list, &e)) {
		weigh(&html, &e);
		weigh(&json, &e);
		weigh(&problem, &e);
	}
	return !list.malformed && html.weight > json.weight &&
	    html.weight > problem.weight;
}

/* --- Accept-Language ---------------------------------------------------- */

/* A tag may be a part of a file's name: RFC 4647, section 2.1. */
static bool
is_language(const struct element *e)
{
	const size_t n = strspn(e->name.p, CONF_LETTERS CONF_DIGITS "-");

	return n > 0 && n == e->name.n && n <= PREFER_TAG_LEN &&
	    *e->name.p != '-' && e->value.p == NULL && !e->other &&
	    e->weight > 0;
}

/* Behind those that are wanted as much. */
static void
add_language(struct prefer_languages *languages, const struct element *e)
{
	struct prefer_language *item = languages->item;
	size_t at = languages->n;

	if (at == PREFER_LANGUAGES && item[--at].weight >= e->weight)
		return;
	languages->n = at + 1;
	for (; at > 0 && item[at - 1].weight < e->weight; at--)
		item[at] = item[at - 1];
	for (size_t i = 0; i < e->name.n; i++)
		item[at].tag[i] = ascii_lower(e->name.p[i]);
	item[at].tag[e->name.n] = '\0';
	item[at].weight = e->weight;
}

void
prefer_languages(
    const struct request *request, struct prefer_languages *languages)
{
	struct list list = { .request = request,
		.variable = "HTTP_ACCEPT_LANGUAGE" };
	struct element e;

	languages->n = 0;
	while (next_element(&list, &e))
		if (is_language(&e))
			add_language(languages, &e);
	if (list.malformed)
		languages->n = 0;
}
