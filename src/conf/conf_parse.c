/*
 * Configuration: sections and options of a file into a struct conf.
 *
 * A line is a section or an option; the first error ends the parsing.
 *
 * conf_option.c defines the options and their values, conf_check.c the rules
 * between two of them.
 */
#include "config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "conf_option.h"

#define BLANKS " \t"

struct parser {
	struct conf *conf;
	struct conf_error *err;
	const char *name;
	const char *text; /* the text that has not been read yet */
	size_t len;
	conf_line line; /* the last one read, from 1 on */
	/* the section of the line, for messages; NULL: there is none yet */
	const char *section;
	enum conf_section kind; /* what its options are of */
	void *base;             /* what they are set in */
	struct conf_origin *origin;
	conf_line server_line, defaults_line;
};

/* Reports an error on the current line; always returns false. */
static bool __attribute__((format(printf, 2, 3)))
fail(struct parser *p, const char *format, ...)
{
	char text[sizeof(p->err->text)];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return conf_error_at(p->name, p->line, text, p->err);
}

/* Removes the blanks around a text; changes the text. */
static char *
trim(char *s)
{
	size_t n;

	s += strspn(s, BLANKS);
	for (n = strlen(s); n > 0 && strchr(BLANKS, s[n - 1]) != NULL; n--)
		;
	s[n] = '\0';
	return s;
}

/* ---- sections --------------------------------------------------------- */

static bool
enter_section(struct parser *p, const char *section, enum conf_section kind,
    void *base, struct conf_origin *origin)
{
	p->section = section;
	p->kind = kind;
	p->base = base;
	p->origin = origin;
	return true;
}

/* Makes room for one more behind n elements, which is zeroed; returns where
 * they are now; NULL, with a message. */
static void *
parse_append(struct parser *p, void *array, size_t n, size_t size)
{
	char *more = realloc(array, (n + 1) * size);

	if (more != NULL)
		memset(more + n * size, 0, size);
	else
		(void)fail(p, "no memory");
	return more;
}

static bool
open_route(struct parser *p, const char *text)
{
	struct conf *conf = p->conf;
	struct conf_route *route;
	struct conf_error why;
	const char *path;

	if (*text == '\0')
		return fail(p, "a route needs a path: [route /path]");
	if (!conf_text_path(text, conf_arena(conf), &path, &why))
		return fail(p, "route %s", why.text);
	for (size_t i = 0; i < conf->nroutes; i++)
		if (strcmp(conf->routes[i].path, path) == 0)
			return fail(p,
			    "route \"%.200s\" is repeated, first on line %u",
			    text, conf->routes[i].line);
	if (conf->nroutes == LIMIT_CONF_ROUTES)
		return fail(p, "more than %d routes", LIMIT_CONF_ROUTES);
	route = parse_append(p, conf->routes, conf->nroutes, sizeof(*route));
	if (route == NULL)
		return false;
	conf->routes = route;
	route += conf->nroutes++;
	route->path = path;
	route->line = p->line;
	return enter_section(p, "[route]", CONF_ROUTE, route, &route->origin);
}

/* A topic is a token, RFC 9110, section 5.6.2. */
static bool
open_effect(struct parser *p, const char *text)
{
	struct conf *conf = p->conf;
	struct conf_effect *effect;
	struct conf_error why;
	const char *name;

	if (*text == '\0')
		return fail(p, "an effect needs a name: [effect name]");
	if (!conf_text_single(
		text, CONF_ITEM_TOPIC, conf_arena(conf), &name, &why))
		return fail(p, "effect %s", why.text);
	for (size_t i = 0; i < conf->neffects; i++)
		if (strcmp(conf->effects[i].name, name) == 0)
			return fail(p,
			    "effect \"%.200s\" is repeated, first on line %u",
			    text, conf->effects[i].line);
	if (conf->neffects == LIMIT_CONF_EFFECTS)
		return fail(p, "more than %d effects", LIMIT_CONF_EFFECTS);
	effect =
	    parse_append(p, conf->effects, conf->neffects, sizeof(*effect));
	if (effect == NULL)
		return false;
	conf->effects = effect;
	effect += conf->neffects++;
	effect->name = name;
	effect->line = p->line;
	if (!conf_option_defaults(CONF_EFFECT, effect, conf_arena(conf), &why))
		return fail(p, "%s", why.text);
	return enter_section(
	    p, "[effect]", CONF_EFFECT, effect, &effect->origin);
}

/* Notes the line of a section that stands once. */
static bool
open_single(struct parser *p, conf_line *line)
{
	if (*line != 0)
		return fail(p, "section %s is repeated, first on line %u",
		    p->section, *line);
	*line = p->line;
	return true;
}

/* Whether text is word, or word and an argument, to which *argument then
 * points. */
static bool
parse_is_word(const char *text, const char *word, const char **argument)
{
	size_t n = strlen(word);

	if (strncmp(text, word, n) != 0 ||
	    (text[n] != '\0' && strchr(BLANKS, text[n]) == NULL))
		return false;
	*argument = text + n + strspn(text + n, BLANKS);
	return true;
}

/* line is "[...", without blanks around it. */
static bool
open_section(struct parser *p, char *line)
{
	char *end = strchr(line, ']');
	const char *argument, *name;

	if (end == NULL || end[1] != '\0')
		return fail(p, "expected \"[section]\"");
	*end = '\0';
	name = trim(line + 1);

	if (strcmp(name, "server") == 0) {
		enter_section(
		    p, "[server]", CONF_SERVER, p->conf, &p->conf->origin);
		return open_single(p, &p->server_line);
	}
	if (strcmp(name, "defaults") == 0) {
		enter_section(p, "[defaults]", CONF_ROUTE, &p->conf->defaults,
		    &p->conf->defaults.origin);
		return open_single(p, &p->defaults_line);
	}
	if (parse_is_word(name, "route", &argument))
		return open_route(p, argument);
	if (parse_is_word(name, "effect", &argument))
		return open_effect(p, argument);
	return fail(p,
	    "unknown section [%.200s]: there are [server], [defaults], "
	    "[route /path] and [effect name]",
	    name);
}

/* ---- options ---------------------------------------------------------- */

static bool
no_such_option(struct parser *p, const char *name)
{
	static const struct {
		enum conf_section kind;
		const char *sections;
	} homes[] = {
		{ CONF_SERVER, "[server]" },
		{ CONF_ROUTE, "[defaults] or [route]" },
		{ CONF_EFFECT, "[effect]" },
	};

	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++)
		if (conf_option_find(homes[i].kind, name) != NULL)
			return fail(p, "option \"%s\" belongs in %s, not in %s",
			    name, homes[i].sections, p->section);
	return fail(p, "unknown option \"%.200s\" in %s", name, p->section);
}

static bool
set_option(struct parser *p, const char *name, const char *value)
{
	const struct conf_option *option;
	struct conf_error why;
	conf_line *line;

	if (p->section == NULL)
		return fail(p, "option \"%.200s\" before any section", name);
	if ((option = conf_option_find(p->kind, name)) == NULL)
		return no_such_option(p, name);
	line = &p->origin->line[conf_option_index(option)];
	if (*line != 0)
		return fail(p, "option \"%s\" is repeated, first on line %u",
		    name, *line);
	if (!conf_option_set(option, p->base, value, conf_arena(p->conf), &why))
		return fail(p, "%s", why.text);
	*line = p->line;
	return true;
}

/* ---- lines ------------------------------------------------------------ */

/* The length of a line up to its comment: ';' or '#' in front, or after a
 * blank. */
static size_t
without_comment(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((s[i] == ';' || s[i] == '#') &&
		    (i == 0 || s[i - 1] == ' ' || s[i - 1] == '\t'))
			return i;
	return n;
}

/* Copies the next line of the text into out, without its comment. */
static bool
parse_next_line(struct parser *p, char out[LIMIT_CONF_LINE + 1])
{
	const char *s = p->text, *end = memchr(s, '\n', p->len);
	size_t n = end != NULL ? (size_t)(end - s) : p->len;

	p->line++;
	p->text += end != NULL ? n + 1 : n;
	p->len -= end != NULL ? n + 1 : n;
	if (n > 0 && s[n - 1] == '\r')
		n--;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return fail(p, "byte 0x%02x is not allowed", c);
	}
	for (; n > 0 && strchr(BLANKS, *s) != NULL; n--)
		s++;
	n = without_comment(s, n);
	while (n > 0 && strchr(BLANKS, s[n - 1]) != NULL)
		n--;
	if (n > LIMIT_CONF_LINE)
		return fail(
		    p, "line too long (at most %d bytes)", LIMIT_CONF_LINE);
	memcpy(out, s, n);
	out[n] = '\0';
	return true;
}

/* Handles a line, which has no blanks around it. */
static bool
parse_line(struct parser *p, char *line)
{
	char *end = line + strcspn(line, "=:");

	if (*line == '\0')
		return true;
	if (*line == '[')
		return open_section(p, line);
	if (end == line || *end != '=')
		return fail(p, "expected \"name = value\"%s",
		    *end == ':' ? ", with \"=\" and not \":\"" : "");
	*end = '\0';
	return set_option(p, trim(line), trim(end + 1));
}

/* ---- the whole -------------------------------------------------------- */

/* The longest path first, so that the first match is the longest prefix. */
static int
by_length(const void *a, const void *b)
{
	const struct conf_route *x = a, *y = b;
	size_t nx = strlen(x->path), ny = strlen(y->path);

	if (nx != ny)
		return nx > ny ? -1 : 1;
	return strcmp(x->path, y->path);
}

static bool
parse_parse(struct parser *p)
{
	struct conf *conf = p->conf;
	char line[LIMIT_CONF_LINE + 1] = "";
	struct conf_error why;
	const char *clash;

	if (p->len > LIMIT_CONF_FILE)
		return fail(p, "longer than %d bytes", LIMIT_CONF_FILE);
	if (p->len >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0) {
		p->text += 3;
		p->len -= 3;
	}
	while (p->len > 0)
		if (!parse_next_line(p, line) || !parse_line(p, line))
			return false;
	if (!conf_preset(conf, &p->line, &why))
		return fail(p, "%s", why.text);
	if ((clash = conf_clash(conf, &p->line)) != NULL)
		return fail(p, "%s", clash);
	if (conf->nroutes > 0)
		qsort(conf->routes, conf->nroutes, sizeof(*conf->routes),
		    by_length);
	conf_derive(conf);
	return true;
}

struct conf *
conf_parse(
    const char *name, const char *text, size_t len, struct conf_error *err)
{
	struct parser parser = {
		.err = err, .name = name, .text = text, .len = len
	};

	assert(name != NULL);
	if ((parser.conf = conf_new(name, err)) == NULL)
		return NULL;
	if (!parse_parse(&parser)) {
		conf_unref(parser.conf);
		parser.conf = NULL;
	}
	return parser.conf;
}
