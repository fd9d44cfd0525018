/*
 * The names that requests have.  A name of a configuration that is none of them
 * is well-formed and perhaps matches nothing: a guard that a slip of the pen
 * has switched off.
 */
#include "config.h"

#include <string.h>

#include "conf.h"

#include "check.h"

/* The IANA registry, and what UPnP, caches and CalDAV use. */
static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE", "GET",
	"HEAD", "OPTIONS", "TRACE", "CONNECT", "QUERY", CONF_UNSAFE, "ACL",
	"BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL",
	"LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR",
	"MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "NOTIFY", "ORDERPATCH",
	"PROPFIND", "PROPPATCH", "PURGE", "REBIND", "REPORT", "SEARCH",
	"SUBSCRIBE", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
	"UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL", NULL };

/* RFC 3875, section 4.1, and what web servers add. */
static const char *const variables[] = { "REMOTE_USER", "REMOTE_ADDR",
	"REMOTE_HOST", "REMOTE_IDENT", "REMOTE_PORT", "AUTH_TYPE", "AUTH_USER",
	"CONTENT_LENGTH", "CONTENT_TYPE", "CONTEXT_DOCUMENT_ROOT",
	"CONTEXT_PREFIX", "DOCUMENT_ROOT", "DOCUMENT_URI", "GATEWAY_INTERFACE",
	"HTTPS", "PATH_INFO", "PATH_TRANSLATED", "QUERY_STRING", "REQUEST_ID",
	"REQUEST_METHOD", "REQUEST_SCHEME", "REQUEST_URI", "SCRIPT_FILENAME",
	"SCRIPT_NAME", "SERVER_ADDR", "SERVER_ADMIN", "SERVER_NAME",
	"SERVER_PORT", "SERVER_PROTOCOL", "SERVER_SOFTWARE", "UNIQUE_ID",
	NULL };

/* Of fields, cookies, and modules for TLS, logins and places, which make names
 * of what they see. */
static const char *const prefixes[] = { "HTTP_", "cookie:", "SSL_", "REDIRECT_",
	"OIDC_", "MELLON_", "AUTHENTICATE_", "AUTHORIZE_", "GEOIP_", "FCGI_",
	NULL };

static bool
is_in(const char *const *list, const char *name)
{
	while (*list != NULL && strcmp(*list, name) != 0)
		list++;
	return *list != NULL;
}

bool
names_method(const char *item)
{
	return is_in(methods, item);
}

bool
names_variable(const char *item)
{
	for (size_t i = 0; prefixes[i] != NULL; i++)
		if (strncmp(item, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return is_in(variables, item);
}
