/*
 * Which sequences are well formed: RFC 3629, section 4.
 */
#include "config.h"

#include "utf8.h"

size_t
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
