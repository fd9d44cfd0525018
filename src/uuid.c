/*
 * The kernel gives the bytes; nothing is kept between two calls.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "uuid.h"

void
uuid_format(unsigned char b[16], char out[UUID_LEN + 1])
{
	b[6] = (unsigned char)(0x40 | (b[6] & 0x0f));
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
	snprintf(out, UUID_LEN + 1,
	    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	    "%02x%02x%02x%02x%02x%02x",
	    b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
	    b[11], b[12], b[13], b[14], b[15]);
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
