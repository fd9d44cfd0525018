/*
 * UTF-8 (RFC 3629) from foreign texts: logs, pages and JSON documents show
 * what is well formed, and escape all other bytes.
 */
#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>

/*
 * The length (bytes) of the character at s, which ends with a NUL, if it has
 * two to four bytes, is well formed and is no C1 control; else 0.  So ASCII is
 * 0 too.
 */
size_t utf8_length(const char *s);

#endif
