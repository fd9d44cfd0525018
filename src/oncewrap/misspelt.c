/*
 * Names of a configuration that are well-formed and match nothing: a guard
 * that a slip of the pen has switched off.
 *
 * The lists hold what clients and web servers send.  A name in them is never
 * misspelt, so what is near another name stands there too.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cginame.h"
#include "conf.h"
#include "conf_value.h"

#include "check.h"

/* The IANA registry, and what UPnP, caches and CalDAV use; the most frequent
 * ones first, for a name that is near two of them. */
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

/* Of modules for TLS, logins and places, which make names of what they see. */
static const char *const families[] = { "SSL_", "REDIRECT_", "OIDC_", "MELLON_",
	"AUTHENTICATE_", "AUTHORIZE_", "GEOIP_", "FCGI_", NULL };

/* Keys of clients and webhooks, and what names a caller. */
static const char *const fields[] = { "Idempotency-Key", "X-Idempotency-Key",
	"Idempotence-Key", "X-Idempotence-Key", "Idempotent-Key",
	"Idempotency-Token", "I-Twilio-Idempotency-Token",
	"X-Contentful-Idempotency-Key", "PayPal-Request-Id", "X-Request-Id",
	"X-GitHub-Delivery", "X-Shopify-Event-Id", "X-Shopify-Webhook-Id",
	"X-Amz-Sns-Message-Id", "Webhook-Id", "Svix-Id", "Authorization",
	"Proxy-Authorization", "Cookie", "X-Remote-User", "X-Forwarded-User",
	NULL };

/* The known name itself, or one that a slip would make of it: two changes in
 * ten letters, one in fewer.  NULL: neither. */
static const char *
nearest(const char *const *list, const char *name, size_t *distance)
{
	const char *near = NULL;
	size_t d;

	*distance = strlen(name) < 10 ? 2 : 3;
	for (; *list != NULL; list++) {
		d = conf_value_distance(name, *list);
		if (d < *distance) {
			*distance = d;
			near = *list;
		}
	}
	return near;
}

bool
misspelt_method(const char *name, char *why, size_t size)
{
	size_t distance;
	const char *near = nearest(methods, name, &distance);

	if (near != NULL && distance == 0)
		return false;
	if (strcmp(name, "ALL") == 0 || strcmp(name, "ANY") == 0)
		near = CONF_UNSAFE;
	if (near != NULL && strcmp(near, CONF_UNSAFE) == 0)
		(void)snprintf(why, size,
		    "\"%.200s\" is no registered method, and guards none: "
		    "write " CONF_UNSAFE " alone, which is all but GET, HEAD, "
		    "OPTIONS and TRACE",
		    name);
	else if (near != NULL)
		(void)snprintf(why, size,
		    "\"%.200s\" is no registered method, so %s may stay "
		    "without a guard: write %s",
		    name, near, near);
	else
		(void)snprintf(why, size,
		    "\"%.200s\" is no registered method, and guards nothing if "
		    "no client sends it: write one such as POST, PUT, PATCH or "
		    "DELETE",
		    name);
	return true;
}

bool
misspelt_field(const char *name, char *why, size_t size)
{
	size_t distance;
	const char *near = nearest(fields, name, &distance);

	if (near == NULL || distance == 0)
		return false;
	(void)snprintf(why, size,
	    "\"%.200s\" is nearly %s: write that, or no request has this field",
	    name, near);
	return true;
}

static bool
near_variable(const char *name, const char *near, char *why, size_t size)
{
	(void)snprintf(why, size,
	    "\"%.200s\" is nearly %s: write that, or it tells no callers apart",
	    name, near);
	return true;
}

bool
misspelt_scope(const char *name, char *why, size_t size)
{
	char variable[64];
	size_t distance;
	const char *near;

	if (strncmp(name, "cookie:", 7) == 0)
		return false;
	if (strncmp(name, "HTTP_", 5) == 0) {
		near = nearest(fields, name + 5, &distance);
		if (near == NULL || distance == 0)
			return false;
		(void)cginame_variable(near, variable, sizeof(variable));
		return near_variable(name, variable, why, size);
	}
	for (size_t i = 0; families[i] != NULL; i++)
		if (strncmp(name, families[i], strlen(families[i])) == 0)
			return false;
	near = nearest(variables, name, &distance);
	if (near != NULL && distance == 0)
		return false;
	if (near != NULL)
		return near_variable(name, near, why, size);
	(void)snprintf(why, size,
	    "\"%.200s\" is no variable that a web server sends by itself, and "
	    "tells no callers apart unless yours sets it: a field such as "
	    "X-User is HTTP_X_USER",
	    name);
	return true;
}
