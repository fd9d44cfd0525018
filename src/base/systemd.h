/*
 * What systemd hands over and wants to be told: sd_listen_fds(3) and
 * sd_notify(3), by hand.
 */
#ifndef SYSTEMD_H
#define SYSTEMD_H

#include <stdint.h>

/* The first descriptor that is handed over. */
#define SYSTEMD_FIRST 3

/*
 * How many descriptors were handed over to this process, from SYSTEMD_FIRST
 * on; 0: none, -1: LISTEN_FDS is no number.  The variables are gone afterwards.
 */
int systemd_descriptors(void);

/*
 * Sends assignments, "READY=1\nSTATUS=...", if systemd asked for them
 * (Type=notify).  It does not wait, and an error changes nothing: systemd acts
 * on what it was not told.
 */
void
systemd_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, before the configuration is read again at a time (us, mono). */
void systemd_notify_reloading(int64_t now_us);

#endif
