/*
 * The name of key i of a set: 32 hexadecimal digits in no order, as clients
 * make them, and the same ones wherever they are asked for.
 */
#ifndef KEYNAME_H
#define KEYNAME_H

#include <stdint.h>

#define KEYNAME_LENGTH 32

/* The finalizer of splitmix64: a permutation of 64 bits. */
static inline uint64_t
keyname_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Writes KEYNAME_LENGTH digits, and no NUL. */
static inline void
keyname(char *out, uint64_t set, uint64_t i)
{
	uint64_t half = keyname_mix(keyname_mix(set) ^ i);
	int n;

	for (n = 0; n < KEYNAME_LENGTH; n++) {
		if (n == KEYNAME_LENGTH / 2)
			half = keyname_mix(half ^ set);
		out[n] = "0123456789abcdef"[half & 15];
		half >>= 4;
	}
}

#endif
