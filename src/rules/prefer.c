/*
 * The fields Prefer, Accept and Accept-Language.
 *
 * The Prefer field, RFC 7240, section 2:
 *
 *   Prefer     = 1#preference
 *   preference = token [ BWS "=" BWS word ] *( OWS ";" [ OWS parameter ] )
 *   parameter  = token [ BWS "=" BWS word ]
 *   word       = token / quoted-string
 *
 * The Accept field, RFC 9110, section 12.5.1:
 *
 *   Accept      = #( media-range [ weight ] )
 *   media-range = ( "*" "/" "*" / token "/" "*" / token "/" token ) parameters
 *   parameters  = *( OWS ";" OWS [ token "=" ( token / quoted-string ) ] )
 *   weight      = OWS ";" OWS "q=" qvalue
 *
 * The Accept-Language field, RFC 9110, section 12.5.4, and RFC 4647, section
 * 2.1:
 *
 *   Accept-Language = #( language-range [ weight ] )
 *   language-range  = ( 1*8ALPHA *( "-" 1*8alphanum ) ) / "*"
 *
 * A server may ignore any of it, so a malformed field is no error: it is
 * treated as missing.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "conf_value.h"

#include "prefer.h"

#define BLANKS " \t"
#define TOKEN  CONF_TOKEN

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

/* token [ BWS "=" BWS word ]. */
struct pair {
	const char *name, *value; /* in the field, not terminated */
	size_t name_len, value_len;
};

/* Takes a pair off the front; returns its end, or NULL. */
static const char *
pair(const char *s, struct pair *pair)
{
	const char *end = s + strspn(s, TOKEN);

	*pair = (struct pair){ s, NULL, (size_t)(end - s), 0 };
	if (end == s)
		return NULL;
	s = skip_blanks(end);
	if (*s != '=')
		return end;
	pair->value = s = skip_blanks(s + 1);
	end = *s == '"' ? quoted_string(s) : s + strspn(s, TOKEN);
	if (end == NULL || end == s)
		return NULL;
	pair->value_len = (size_t)(end - s);
	return end;
}

static bool
prefer_is_word(const char *s, size_t n, const char *word)
{
	return n == strlen(word) && strncasecmp(s, word, n) == 0;
}

/* What the parameters of an element say. */
struct range {
	const char *type, *subtype; /* in the field, not terminated */
	size_t type_len, subtype_len;
	bool other;   /* a parameter that no document of ours has */
	bool charset; /* charset=utf-8 */
	unsigned weight;
};

#define WEIGHT_MAX 1000

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
		if (s[i] < '0' || s[i] > '9')
			return false;
		unit /= 10;
		*weight += (unsigned)(s[i] - '0') * unit;
	}
	return *weight <= WEIGHT_MAX;
}

/* Whether it may stand in a range: with a value, and without blanks. */
static bool
parameter(const struct pair *p, struct range *range)
{
	if (p->value != p->name + p->name_len + 1)
		return false;
	if (prefer_is_word(p->name, p->name_len, "q"))
		return parse_weight(p->value, p->value_len, &range->weight);
	if (prefer_is_word(p->name, p->name_len, "charset") &&
	    (prefer_is_word(p->value, p->value_len, "utf-8") ||
		prefer_is_word(p->value, p->value_len, "\"utf-8\"")))
		range->charset = true;
	else
		range->other = true;
	return true;
}

/* Takes all parameters of an element off the front, which end it; range: NULL
 * if they mean nothing.  Returns their end, or NULL. */
static const char *
parameters(const char *s, struct range *range)
{
	struct pair p;

	while (*(s = skip_blanks(s)) == ';') {
		s = skip_blanks(s + 1);
		if (*s == '\0' || *s == ',' || *s == ';')
			continue;
		if ((s = pair(s, &p)) == NULL ||
		    (range != NULL && !parameter(&p, range)))
			return NULL;
	}
	return *s == '\0' || *s == ',' ? s : NULL;
}

/* Skips to the next element of a list.  RFC 9110, section 5.6.1.2: empty ones
 * mean nothing.  False: there is none. */
static bool
next_element(const char **s)
{
	*s += strspn(*s, BLANKS ",");
	return **s != '\0';
}

/* --- Prefer ------------------------------------------------------------- */

enum verdict { SILENT, ASKS, DECLINES };

/* Judges one field.  No value, or an empty one, asks; another declines. */
static enum verdict
prefer_judge(const char *s)
{
	enum verdict verdict = SILENT;
	struct pair p;

	while (next_element(&s)) {
		if ((s = pair(s, &p)) == NULL ||
		    (s = parameters(s, NULL)) == NULL)
			return SILENT;
		if (verdict != SILENT ||
		    !prefer_is_word(p.name, p.name_len, "respond-async"))
			continue;
		verdict = p.value == NULL ||
			prefer_is_word(p.value, p.value_len, "\"\"")
		    ? ASKS
		    : DECLINES;
	}
	return verdict;
}

bool
prefer_respond_async(const struct request *request)
{
	enum verdict verdict = SILENT;

	/* Some web servers pass each line of a repeated field as a
	 * parameter. */
	for (size_t i = 0; i < request->nparams && verdict == SILENT; i++)
		if (strcmp(request->params[i].name, "HTTP_PREFER") == 0)
			verdict = prefer_judge(request->params[i].value);
	return verdict == ASKS;
}

/* --- Accept ------------------------------------------------------------- */

/* A media type that we can send, and the weight that the client gives it. */
struct offer {
	const char *type, *subtype;
	unsigned precision; /* of the range that gave the weight; 0: none */
	unsigned weight;
};

/* Takes an element off the front; returns its end, or NULL. */
static const char *
media_range(const char *s, struct range *range)
{
	memset(range, 0, sizeof(*range));
	range->weight = WEIGHT_MAX;
	range->type = s;
	range->type_len = strspn(s, TOKEN);
	s += range->type_len;
	if (range->type_len == 0 || *s++ != '/')
		return NULL;
	range->subtype = s;
	range->subtype_len = strspn(s, TOKEN);
	s += range->subtype_len;
	if (range->subtype_len == 0 ||
	    (prefer_is_word(range->type, range->type_len, "*") &&
		!prefer_is_word(range->subtype, range->subtype_len, "*")))
		return NULL;
	return parameters(s, range);
}

/* The most precise range decides; of several the first. */
static void
weigh(struct offer *offer, const struct range *range)
{
	unsigned precision = 1;

	if (range->other)
		return;
	if (!prefer_is_word(range->type, range->type_len, "*")) {
		if (!prefer_is_word(range->type, range->type_len, offer->type))
			return;
		precision = 2;
	}
	if (!prefer_is_word(range->subtype, range->subtype_len, "*")) {
		if (!prefer_is_word(
			range->subtype, range->subtype_len, offer->subtype))
			return;
		precision = 3;
	}
	if (range->charset)
		precision += 3;
	if (precision <= offer->precision)
		return;
	offer->precision = precision;
	offer->weight = range->weight;
}

enum { OFFER_HTML, OFFER_PROBLEM, OFFER_JSON, OFFERS };

/* False: the field is malformed. */
static bool
accept(const char *s, struct offer offers[OFFERS])
{
	struct range range;

	while (next_element(&s)) {
		if ((s = media_range(s, &range)) == NULL)
			return false;
		for (size_t i = 0; i < OFFERS; i++)
			weigh(&offers[i], &range);
	}
	return true;
}

bool
prefer_html(const struct request *request)
{
	struct offer offers[OFFERS] = {
		[OFFER_HTML] = { "text", "html", 0, 0 },
		[OFFER_PROBLEM] = { "application", "problem+json", 0, 0 },
		[OFFER_JSON] = { "application", "json", 0, 0 },
	};

	for (size_t i = 0; i < request->nparams; i++)
		if (strcmp(request->params[i].name, "HTTP_ACCEPT") == 0 &&
		    !accept(request->params[i].value, offers))
			return false;
	return offers[OFFER_HTML].weight > offers[OFFER_PROBLEM].weight &&
	    offers[OFFER_HTML].weight > offers[OFFER_JSON].weight;
}

/* --- Accept-Language ---------------------------------------------------- */

/* Returns the end of a language-range, or NULL. */
static const char *
language_range(const char *s)
{
	size_t n = *s == '*' ? 1 : strspn(s, CONF_LETTERS);
	const char *const letters = *s == '*' ? "" : CONF_LETTERS CONF_DIGITS;

	while (n > 0 && n <= 8 && s[n] == '-' && *letters != '\0') {
		s += n + 1;
		n = strspn(s, letters);
	}
	return n > 0 && n <= 8 ? s + n : NULL;
}

static bool
prefer_has_language(
    const struct prefer_languages *languages, const char *tag, size_t n)
{
	for (size_t i = 0; i < languages->n; i++)
		if (prefer_is_word(tag, n, languages->item[i].tag))
			return true;
	return false;
}

/* Removes the tag if it is wanted less: it came with a more precise one. */
static void
drop_language(struct prefer_languages *languages, const char *tag, size_t n,
    unsigned weight)
{
	struct prefer_language *item = languages->item;
	size_t at = 0;

	while (at < languages->n &&
	    !(prefer_is_word(tag, n, item[at].tag) && item[at].weight < weight))
		at++;
	if (at == languages->n)
		return;
	for (languages->n--; at < languages->n; at++)
		item[at] = item[at + 1];
}

/* Behind those that are wanted as much. */
static void
add_language(struct prefer_languages *languages, const char *tag, size_t n,
    unsigned weight)
{
	struct prefer_language *item = languages->item;
	size_t at = languages->n;

	if (n > PREFER_TAG_LEN || prefer_has_language(languages, tag, n))
		return;
	if (languages->n == PREFER_LANGUAGES && item[--at].weight >= weight)
		return;
	languages->n = at + 1;
	for (; at > 0 && item[at - 1].weight < weight; at--)
		item[at] = item[at - 1];
	for (size_t i = 0; i < n; i++)
		item[at].tag[i] = (char)tolower((unsigned char)tag[i]);
	item[at].tag[n] = '\0';
	item[at].weight = weight;
}

/* Adds the tag, and what is left of it without its last subtags. */
static void
add_languages(struct prefer_languages *languages, const char *tag, size_t n,
    unsigned weight)
{
	drop_language(languages, tag, n, weight);
	while (n > 0) {
		add_language(languages, tag, n, weight);
		while (n > 0 && tag[n - 1] != '-')
			n--;
		/* A hyphen, and a single letter before it with its own. */
		n -= n > 0;
		if (n > 2 && tag[n - 2] == '-')
			n -= 2;
	}
}

/* Takes the weight of a language, if there is one, off the front, which ends
 * the element.  Returns its end, or NULL. */
static const char *
language_weight(const char *s, unsigned *weight)
{
	struct range range = { .weight = WEIGHT_MAX };
	struct pair p;

	s = skip_blanks(s);
	if (*s == ';') {
		s = pair(skip_blanks(s + 1), &p);
		if (s == NULL || !prefer_is_word(p.name, p.name_len, "q") ||
		    !parameter(&p, &range))
			return NULL;
		s = skip_blanks(s);
	}
	*weight = range.weight;
	return *s == '\0' || *s == ',' ? s : NULL;
}

/* False: the field is malformed. */
static bool
accept_languages(const char *s, struct prefer_languages *languages)
{
	const char *tag, *end;
	unsigned weight;

	while (next_element(&s)) {
		tag = s;
		if ((end = language_range(tag)) == NULL ||
		    (s = language_weight(end, &weight)) == NULL)
			return false;
		if (*tag != '*' && weight > 0)
			add_languages(
			    languages, tag, (size_t)(end - tag), weight);
	}
	return true;
}

void
prefer_languages(
    const struct request *request, struct prefer_languages *languages)
{
	bool good = true;

	languages->n = 0;
	for (size_t i = 0; i < request->nparams && good; i++)
		if (strcmp(request->params[i].name, "HTTP_ACCEPT_LANGUAGE") ==
		    0)
			good = accept_languages(
			    request->params[i].value, languages);
	if (!good)
		languages->n = 0;
}
