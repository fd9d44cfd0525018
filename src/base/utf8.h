/*
 * UTF-8 (RFC 3629) from foreign texts: logs, pages and JSON documents show
 * what is well formed (section 4 of the RFC), and escape all other bytes.
 */
#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads the character at s, of left bytes: *code is its code point.  Returns
 * its length; 0: it is not well formed, or left is 0.
 */
static inline size_t
utf8_read(const void *s, size_t left, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = s;
	size_t n;

	if (left == 0 || (p[0] >= 0x80 && p[0] < 0xc0) || p[0] >= 0xf8)
		return 0;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 1;
	*code = n == 1 ? p[0] : p[0] & (0x7fU >> n);
	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (p[i] & 0x3fU);
	}
	/* overlong; a surrogate; no code point */
	if (*code < least[n] || (*code >= 0xd800 && *code <= 0xdfff) ||
	    *code > 0x10ffff)
		return 0;
	return n;
}

/*
 * The length (bytes) of the character at s, which ends with a NUL, if it has
 * two to four bytes, is well formed and is no C1 control; else 0.  So ASCII is
 * 0 too.
 */
static inline size_t
utf8_length(const char *s)
{
	uint32_t code;
	/* A NUL ends a character that is cut. */
	const size_t n = (*s & 0x80) != 0 ? utf8_read(s, 4, &code) : 0;

	return n > 0 && code >= 0xa0 ? n : 0;
}

#endif
