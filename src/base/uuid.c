/*
 * The kernel gives the bytes; no state is kept between two calls.
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

/* Not arc4random(): musl does not have it, nor glibc before 2.36. */
static void
uuid_fill(void *bytes, size_t n)
{
	/* It cannot fail for up to 256 bytes. */
	if (getentropy(bytes, n) == -1)
		assert(!"getentropy");
}

void
uuid_random(char out[UUID_LEN + 1])
{
	unsigned char bytes[16];

	uuid_fill(bytes, sizeof(bytes));
	uuid_format(bytes, out);
}

uint32_t
uuid_bits(void)
{
	uint32_t bits;

	uuid_fill(&bits, sizeof(bits));
	return bits;
}
