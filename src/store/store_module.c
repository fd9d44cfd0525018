/*
 * See store_module.h.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_module.h"

#define MODULE "oncewrap-postgresql.so"

static enum rc
module_of(
    void *handle, const struct store_module **module, char *err, size_t errsize)
{
	const struct store_module *m = dlsym(handle, "oncewrap_postgresql");

	if (m == NULL || strcmp(m->version, PACKAGE_VERSION) != 0) {
		snprintf(err, errsize,
		    "%s is of version %s, and this program of %s: install "
		    "both anew",
		    MODULE, m != NULL ? m->version : "unknown",
		    PACKAGE_VERSION);
		return RC_VERSION;
	}
	*module = m;
	return RC_OK;
}

enum rc
store_module_load(const struct store_module **module, char *err, size_t errsize)
{
	const char *folder = secure_getenv("ONCEWRAP_MODULES");
	char name[4096];
	void *handle;

	if (folder == NULL || *folder == '\0')
		folder = MODULES;
	(void)snprintf(name, sizeof(name), "%s/" MODULE, folder);
	/* It stays loaded: a library's threads and exit handlers may need
	 * it. */
	handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (handle == NULL) {
		snprintf(err, errsize,
		    "a PostgreSQL database needs the package "
		    "oncewrap-postgresql: %s",
		    dlerror());
		return RC_NOTFOUND;
	}
	return module_of(handle, module, err, errsize);
}
