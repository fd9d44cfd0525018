/*
 * UTF-8 (RFC 3629) from foreign texts: logs, pages and JSON documents show
 * what is well formed (section 4 of the RFC), and escape all other bytes.
 */
#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>

/*
 * The length (bytes) of the character at s, which ends with a NUL, if it has
 * two to four bytes, is well formed and is no C1 control; else 0.  So ASCII is
 * 0 too.
 */
static inline size_t
utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	size_t n, i;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xc2 || s[0] == 0xe0) /* C1 controls; overlong */
		low = 0xa0;
	else if (s[0] == 0xed) /* surrogates */
		high = 0x9f;
	else if (s[0] == 0xf0) /* overlong */
		low = 0x90;
	else if (s[0] == 0xf4) /* above U+10FFFF */
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

#endif
