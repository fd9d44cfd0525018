/*
 * The fields Prefer (RFC 7240, section 2), Accept and Accept-Language (RFC
 * 9110, sections 12.5.1 and 12.5.4) are lists of one form:
 *
 *   list      = 1#element
 *   element   = name [ BWS "=" BWS word ] *( OWS ";" [ OWS parameter ] )
 *   parameter = token [ BWS "=" BWS word ]
 *   word      = token / quoted-string
 *
 * A server may ignore any of them, so a field of another form is no error: it
 * is treated as missing.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "conf_value.h"

#include "prefer.h"

#define BLANKS " \t"

#define WEIGHT_MAX 1000

struct element {
	const char *name, *value; /* in the field, not terminated */
	size_t name_len, value_len;
	bool other; /* a parameter that no document of ours has */
	unsigned weight;
};

/* All fields of that name, which are one list. */
struct list {
	const struct request *request;
	const char *variable;
	size_t next;   /* of the request's parameters */
	const char *s; /* the rest of the field; NULL: it has ended */
	bool malformed;
};

static const char *
skip_blanks(const char *s)
{
	return s + strspn(s, BLANKS);
}

/* RFC 9110, section 5.6.4.  Returns the end of the string, or NULL. */
static const char *
quoted_string(const char *s)
{
	for (s++; *s != '"'; s++) {
		if (*s == '\\')
			s++;
		if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
			return NULL;
	}
	return s + 1;
}

/* Takes a name of those characters, and its value if there is one, off the
 * front; returns their end, or NULL. */
static const char *
pair(const char *s, const char *characters, struct element *e)
{
	const char *end = s + strspn(s, characters);

	*e = (struct element){ .name = s, .name_len = (size_t)(end - s) };
	if (end == s)
		return NULL;
	s = skip_blanks(end);
	if (*s != '=')
		return end;
	e->value = s = skip_blanks(s + 1);
	end = *s == '"' ? quoted_string(s) : s + strspn(s, CONF_TOKEN);
	if (end == NULL || end == s)
		return NULL;
	e->value_len = (size_t)(end - s);
	return end;
}

static bool
prefer_is_word(const char *s, size_t n, const char *word)
{
	return n == strlen(word) && strncasecmp(s, word, n) == 0;
}

static bool
element_is(const struct element *e, const char *name)
{
	return prefer_is_word(e->name, e->name_len, name);
}

/* qvalue: RFC 9110, section 12.4.2.  False: it is none. */
static bool
parse_weight(const char *s, size_t n, unsigned *weight)
{
	unsigned unit = WEIGHT_MAX;

	if (n == 0 || n > 5 || (*s != '0' && *s != '1') ||
	    (n > 1 && s[1] != '.'))
		return false;
	*weight = *s == '1' ? WEIGHT_MAX : 0;
	for (size_t i = 2; i < n; i++) {
		if (!ascii_is_digit(s[i]))
			return false;
		unit /= 10;
		*weight += (unsigned)(s[i] - '0') * unit;
	}
	return *weight <= WEIGHT_MAX;
}

/* Takes an element off the front; returns its end, or NULL. */
static const char *
prefer_element(const char *s, struct element *e)
{
	struct element p;

	/* The slash is that of a media range. */
	if ((s = pair(s, CONF_TOKEN "/", e)) == NULL)
		return NULL;
	e->weight = WEIGHT_MAX;
	while (*(s = skip_blanks(s)) == ';') {
		s = skip_blanks(s + 1);
		if (*s == '\0' || *s == ',' || *s == ';')
			continue;
		if ((s = pair(s, CONF_TOKEN, &p)) == NULL)
			return NULL;
		if (!element_is(&p, "q"))
			e->other = e->other || !element_is(&p, "charset");
		else if (!parse_weight(p.value, p.value_len, &e->weight))
			return NULL;
	}
	return *s == '\0' || *s == ',' ? s : NULL;
}

/* False: there are no more elements, or one is malformed. */
static bool
next_element(struct list *l, struct element *e)
{
	const struct request *rq = l->request;

	for (;;) {
		/* RFC 9110, section 5.6.1.2: empty ones mean nothing. */
		if (l->s != NULL)
			l->s += strspn(l->s, BLANKS ",");
		if (l->s != NULL && *l->s != '\0')
			break;
		while (l->next < rq->nparams &&
		    strcmp(rq->params[l->next].name, l->variable) != 0)
			l->next++;
		if (l->next == rq->nparams)
			return false;
		l->s = rq->params[l->next++].value;
	}
	l->s = prefer_element(l->s, e);
	l->malformed = l->s == NULL;
	return !l->malformed;
}

bool
prefer_respond_async(const struct request *request)
{
	struct list list = { .request = request, .variable = "HTTP_PREFER" };
	bool asks = false, found = false;
	struct element e;

	while (next_element(&list, &e)) {
		if (found || !element_is(&e, "respond-async"))
			continue;
		found = true;
		/* No value, or an empty one, asks; another declines. */
		asks = e.value == NULL ||
		    prefer_is_word(e.value, e.value_len, "\"\"");
	}
	return asks && !list.malformed;
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
	const unsigned precision = element_is(e, offer->type) ? 3
	    : element_is(e, offer->range)                     ? 2
	    : element_is(e, "*/*")                            ? 1
							      : 0;

	if (e->other || precision <= offer->precision)
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
	const size_t n = strspn(e->name, CONF_LETTERS CONF_DIGITS "-");

	return n == e->name_len && n <= PREFER_TAG_LEN && *e->name != '-' &&
	    e->value == NULL && !e->other && e->weight > 0;
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
	for (size_t i = 0; i < e->name_len; i++)
		item[at].tag[i] = ascii_lower(e->name[i]);
	item[at].tag[e->name_len] = '\0';
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
