/*
 * The fields of a form: of a query string, or of a body.
 */
#ifndef PAGE_FORM_H
#define PAGE_FORM_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "request.h"

/*
 * Appends the decoded value of the first field of that name to out, which stays
 * empty if there is none.  RC_OK; RC_INVALID: the value has a NUL; RC_LIMIT (of
 * out) or RC_NOMEM.
 */
enum rc
page_form_query(const struct request *rq, const char *name, struct buf *out);

/* The same of the body, of type application/x-www-form-urlencoded; RC_INVALID,
 * too: it has another type.  RC_IO: it cannot be read. */
enum rc
page_form_body(const struct request *rq, const char *name, struct buf *out);

/* Either of them. */
typedef enum rc
page_form_read(const struct request *rq, const char *name, struct buf *out);

/* A number of 1 or more in decimal digits; 0: it is none. */
int64_t page_form_number(const char *text);

#endif
