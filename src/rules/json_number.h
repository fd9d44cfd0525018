/*
 * Numbers of a JSON text, as exact decimals.
 */
#ifndef JSON_NUMBER_H
#define JSON_NUMBER_H

#include "buf.h"
#include "json_string.h"

/*
 * Reads the number that begins at in->p and appends its canonical form to out:
 * the shortest of 150, 15e1 and 1.5e2, and the first of these if several are
 * equally short.  So it is never longer than the input.  RC_INVALID if it is
 * no number, RC_NOMEM, or the result of buf_add(); on failure out may hold a
 * part.
 */
enum rc json_number(struct json_input *in, struct buf *out);

#endif
