/*
 * UUIDs as texts and as bytes, random ones (version 4, RFC 9562, section 5.4),
 * and random bits.
 */
#ifndef UUID_H
#define UUID_H

#include <stdbool.h>
#include <stdint.h>

#define UUID_LEN 36

/* The text of 16 bytes as they are, and the bytes of a text.  False: it is no
 * UUID, of 36 characters with lower-case digits. */
void uuid_text(const unsigned char bytes[16], char out[UUID_LEN + 1]);
bool uuid_parse(const char *text, unsigned char bytes[16]);

/* The UUID of a text as people copy it: in any case, with or without
 * "urn:uuid:" and blanks around.  False: it is none. */
bool uuid_copied(const char *text, char out[UUID_LEN + 1]);

void uuid_random(char out[UUID_LEN + 1]);

/* The same as a name, "urn:uuid:...": of a request in the log. */
#define UUID_URN     "urn:uuid:"
#define UUID_URN_LEN (9 + UUID_LEN)
void uuid_urn(char out[UUID_URN_LEN + 1]);

/* 128 random bits as 32 hexadecimal digits. */
#define UUID_DIGITS 32
void uuid_digits(char out[UUID_DIGITS + 1]);

/* 32 random bits. */
uint32_t uuid_bits(void);

#endif
