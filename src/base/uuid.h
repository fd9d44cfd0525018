/*
 * Random UUIDs (version 4, RFC 9562, section 5.4), and random bits.
 */
#ifndef UUID_H
#define UUID_H

#include <stdint.h>

#define UUID_LEN 36

/* Of 16 random bytes, in which version and variant are set. */
void uuid_format(unsigned char bytes[16], char out[UUID_LEN + 1]);

void uuid_random(char out[UUID_LEN + 1]);

/* 32 random bits. */
uint32_t uuid_bits(void);

#endif
