/*
 * What the pages show of values: ages, times, and texts that are cut.
 */
#ifndef PAGE_WRITE_H
#define PAGE_WRITE_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_AGE_SIZE   48
#define PAGE_COUNT_SIZE 32

/* "3 min", "2 h 5 min", "4 d 1 h"; less than nothing is "0 s". */
void page_write_age(int64_t ms, char out[PAGE_AGE_SIZE]);

/* "2026-02-09 07:04:38 UTC"; wall clock (ms). */
#define PAGE_UTC_SIZE 32
void page_write_utc(int64_t wall, char out[PAGE_UTC_SIZE]);

/* "17", "more than 17", or "not counted yet" for a negative number. */
void page_write_count(int64_t n, int more, char out[PAGE_COUNT_SIZE]);

/*
 * Copies the beginning of a text, up to size - 4 bytes of whole characters, and
 * adds "..." if something is missing; NULL is "".
 */
void page_write_cut(const char *text, char *out, size_t size);

#endif
