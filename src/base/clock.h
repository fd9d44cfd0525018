/*
 * The only file that reads time.  Every name says which time:
 *
 *   mono   milliseconds since some point; only differences mean anything
 *          (mono_us: microseconds, to time short operations)
 *   wall   milliseconds since 1970; jumps; for people, never for deadlines
 *   store  milliseconds counted by a key store: clock_boot() plus the offset
 *          that the store keeps for this boot
 *
 * All deadlines in the store are in store time.  It counts while the host is
 * up, suspended or not, and is the same for every process.  No change of the
 * wall clock moves it.  After a reboot it goes on from the last value that was
 * stored.  So a key may live longer than its retention by the time that the
 * host was off, and never shorter.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

int64_t clock_mono(void);
int64_t clock_mono_us(void);
int64_t clock_wall(void);

/* Milliseconds until a time of clock_mono() (ms), for poll(2): at least 0. */
int clock_left(int64_t mono);

/* Waits for the semaphore until a time of clock_mono() (ms).  False: the time
 * is past. */
_Bool clock_wait_mono(sem_t *sem, int64_t mono);

/* Milliseconds since boot of the kernel, including suspended time:
 * CLOCK_BOOTTIME, as outside of any time namespace. */
int64_t clock_boot(void);

/*
 * The wall clock's time at boot (ms): clock_wall() less clock_boot().  The
 * difference is taken in nanoseconds and then rounded, so it is the same each
 * time unless the wall clock was changed.
 */
int64_t clock_wall_at_boot(void);

/* The kernel's id of this boot, 36 characters; false if it cannot be read. */
#define CLOCK_BOOT_ID_LEN 36
_Bool clock_boot_id(char out[CLOCK_BOOT_ID_LEN + 1]);

#define CLOCK_SYSLOG_LEN 15

/* RFC 3164, section 4.1.2: "Feb  9 07:04:38", local time. */
void clock_syslog(int64_t wall, char out[CLOCK_SYSLOG_LEN + 1]);

#endif
