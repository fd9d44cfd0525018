/*
 * Texts of return codes.
 */
#include "config.h"

#include "rc.h"

const char *
rc_text(enum rc rc)
{
	switch (rc) {
	case RC_OK:
		return "ok";
	case RC_NOMEM:
		return "out of memory";
	case RC_LIMIT:
		return "limit reached";
	case RC_IO:
		return "input/output error";
	case RC_FULL:
		return "no space left";
	case RC_READONLY:
		return "a file may not be written";
	case RC_BUSY:
		return "locked by another process";
	case RC_CORRUPT:
		return "corrupt data";
	case RC_REPLACED:
		return "a file was removed or replaced";
	case RC_WENT_BACK:
		return "store-went-back";
	case RC_VERSION:
		return "written by a newer release";
	case RC_NOTFOUND:
		return "not found";
	case RC_EXISTS:
		return "exists already";
	case RC_LOST:
		return "lease lost";
	case RC_PENDING:
		return "not done yet";
	case RC_UNSAFE:
		return "the database server may lose commits";
	case RC_UNRECORDED:
		return "outcomes are not recorded yet";
	case RC_TIMEOUT:
		return "timed out";
	case RC_CLOSED:
		return "closed";
	case RC_INVALID:
		return "invalid";
	}
	return "unknown return code";
}
