/*
 * Names as CGI has them: the path of a request, the CGI variable of a field.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "cginame.h"

/*
 * Resolves path, which begins with a slash, in place and returns its new
 * length.  w always stands behind a slash until the last segment is copied.
 * Returns 0 if a ".." with bytes at info or behind it leads above the segments
 * that end before info.
 */
static size_t
cginame_resolve(char *path, size_t len, size_t info)
{
	size_t r, w, n, floor = 0;
	const char *end;

	assert(len > 0 && path[0] == '/');
	w = 1;
	for (r = 1; r < len; r += n + 1) {
		end = memchr(path + r, '/', len - r);
		n = end != NULL ? (size_t)(end - (path + r)) : len - r;
		if (floor == 0 && r + n > info)
			floor = w;
		if (n == 0 || (n == 1 && path[r] == '.'))
			continue;
		if (n == 2 && path[r] == '.' && path[r + 1] == '.') {
			if (floor != 0 && w <= floor)
				return 0;
			/* The parent of the root is the root. */
			if (w > 1)
				w--;
			while (path[w - 1] != '/')
				w--;
			continue;
		}
		memmove(path + w, path + r, n);
		w += n;
		if (end != NULL)
			path[w++] = '/';
	}
	return w;
}

enum rc
cginame_path(const char *script_name, const char *path_info, struct buf *out)
{
	const char *name = script_name != NULL ? script_name : "";
	size_t len = 0;
	enum rc rc;

	buf_clear(out);
	rc = buf_addf(out, "/%s%s", name, path_info != NULL ? path_info : "");
	if (rc == RC_OK &&
	    (len = cginame_resolve(out->data, out->len, 1 + strlen(name))) == 0)
		rc = RC_INVALID;
	buf_truncate(out, rc == RC_OK ? len : 0);
	return rc;
}

enum rc
cginame_variable(const char *field, char *out, size_t outsize)
{
	const char *prefix = "HTTP_";
	size_t n = 0;

	/* RFC 3875, section 4.1.18: these two have variables of their own. */
	if (strcasecmp(field, "Content-Type") == 0 ||
	    strcasecmp(field, "Content-Length") == 0)
		prefix = "";

	assert(outsize > 0);
	if (strlen(prefix) + strlen(field) >= outsize) {
		out[0] = '\0';
		return RC_LIMIT;
	}
	for (; *prefix != '\0'; prefix++)
		out[n++] = *prefix;
	for (; *field != '\0'; field++) {
		if (*field >= 'a' && *field <= 'z')
			out[n++] = (char)(*field - 'a' + 'A');
		else if ((*field >= 'A' && *field <= 'Z') ||
		    (*field >= '0' && *field <= '9'))
			out[n++] = *field;
		else
			out[n++] = '_';
	}
	out[n] = '\0';
	return RC_OK;
}
