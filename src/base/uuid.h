/*
 * Random UUIDs: version 4, RFC 9562, section 5.4.
 */
#ifndef UUID_H
#define UUID_H

#define UUID_LEN 36

/* Of 16 random bytes, in which version and variant are set. */
void uuid_format(unsigned char bytes[16], char out[UUID_LEN + 1]);

void uuid_random(char out[UUID_LEN + 1]);

#endif
