/*
 * The kernel gives the bytes; nothing is kept between two calls.
 */
#include "config.h"

#include <assert.h>
#include <unistd.h>

#include "uuid.h"

void
uuid_format(unsigned char b[16], char out[UUID_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	int i;

	b[6] = (unsigned char)(0x40 | (b[6] & 0x0f));
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = digits[b[i] >> 4];
		*out++ = digits[b[i] & 0x0f];
	}
	*out = '\0';
}

void
uuid_random(char out[UUID_LEN + 1])
{
	unsigned char bytes[16];

	/* Up to 256 bytes it cannot fail. */
	if (getentropy(bytes, sizeof(bytes)) == -1)
		assert(!"getentropy");
	uuid_format(bytes, out);
}
