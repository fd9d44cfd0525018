/*
 * The only room that reads time.  Every name says which time:
 *
 *   mono   milliseconds since some point; only differences mean anything
 *          (mono_us: microseconds, to time something short)
 *   wall   milliseconds since 1970; jumps; for people, never for deadlines
 *   store  milliseconds counted by a key store: clock_boot() plus the offset
 *          that the store keeps for this boot.  All deadlines in the store are
 *          in it.  It counts while the host is up (suspended or not), the
 *          same for every process; no change of the wall clock moves it; over
 *          a reboot it goes on from where it was last seen.  So a key may live
 *          longer than its retention by the time the host was off, and never
 *          shorter.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

int64_t clock_mono(void);
int64_t clock_mono_us(void);
int64_t clock_wall(void);

/* Waits for the semaphore until a time of clock_mono(); false: in vain. */
_Bool clock_wait_mono(sem_t *, int64_t mono);

/* Milliseconds since boot, suspended time included: CLOCK_BOOTTIME. */
int64_t clock_boot(void);

/*
 * What the wall clock would have shown at boot, ms: clock_wall() less
 * clock_boot(), but taken to the nanosecond and then rounded, so that it is
 * the same each time unless the wall clock was changed.
 */
int64_t clock_wall_at_boot(void);

/* The kernel's name of this boot, 36 characters; false if it cannot be read. */
#define CLOCK_BOOT_ID_LEN 36
_Bool clock_boot_id(char out[CLOCK_BOOT_ID_LEN + 1]);

#define CLOCK_HTTP_LEN    29
#define CLOCK_RFC3339_LEN 24

/* IMF-fixdate, RFC 9110, section 5.6.7. */
void clock_http(int64_t wall, char out[CLOCK_HTTP_LEN + 1]);

/* RFC 3339, UTC, with milliseconds. */
void clock_rfc3339(int64_t wall, char out[CLOCK_RFC3339_LEN + 1]);

#endif
