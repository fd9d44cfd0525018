/*
 * The kernel gives the bytes; no state is kept between two calls.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "uuid.h"

static const char digits[] = "0123456789abcdef";

/* Whether a hyphen stands before that byte. */
static bool
has_hyphen(int i)
{
	return i == 4 || i == 6 || i == 8 || i == 10;
}

void
uuid_text(const unsigned char b[16], char out[UUID_LEN + 1])
{
	for (int i = 0; i < 16; i++) {
		if (has_hyphen(i))
			*out++ = '-';
		*out++ = digits[b[i] >> 4];
		*out++ = digits[b[i] & 0x0f];
	}
	*out = '\0';
}

bool
uuid_parse(const char *text, unsigned char b[16])
{
	const char *upper, *lower;

	if (strlen(text) != UUID_LEN)
		return false;
	for (int i = 0; i < 16; i++, text += 2) {
		if (has_hyphen(i) && *text++ != '-')
			return false;
		upper = strchr(digits, text[0]);
		lower = strchr(digits, text[1]);
		if (upper == NULL || lower == NULL)
			return false;
		b[i] =
		    (unsigned char)((upper - digits) << 4 | (lower - digits));
	}
	return true;
}

bool
uuid_copied(const char *text, char out[UUID_LEN + 1])
{
	static const char urn[] = UUID_URN, blanks[] = " \t\r\n";
	unsigned char b[16];
	size_t i;

	text += strspn(text, blanks);
	if (strncasecmp(text, urn, sizeof(urn) - 1) == 0)
		text += sizeof(urn) - 1;
	if (strcspn(text, blanks) != UUID_LEN ||
	    text[UUID_LEN + strspn(text + UUID_LEN, blanks)] != '\0')
		return false;
	/* RFC 9562, section 4: written in lower case, and read in either. */
	for (i = 0; i < UUID_LEN; i++)
		out[i] = text[i] >= 'A' && text[i] <= 'Z'
		    ? (char)(text[i] - 'A' + 'a')
		    : text[i];
	out[UUID_LEN] = '\0';
	return uuid_parse(out, b);
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
	bytes[6] = (unsigned char)(0x40 | (bytes[6] & 0x0f));
	bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f));
	uuid_text(bytes, out);
}

void
uuid_urn(char out[UUID_URN_LEN + 1])
{
	uuid_random(stpcpy(out, UUID_URN));
}

void
uuid_digits(char out[UUID_DIGITS + 1])
{
	unsigned char bytes[UUID_DIGITS / 2];
	size_t i;

	uuid_fill(bytes, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 0x0f];
	}
	*out = '\0';
}

uint32_t
uuid_bits(void)
{
	uint32_t bits;

	uuid_fill(&bits, sizeof(bits));
	return bits;
}
