/*
 * The interface to systemd: sd_listen_fds(3) and sd_notify(3), without
 * libsystemd.
 */
#ifndef SYSTEMD_H
#define SYSTEMD_H

/* The first descriptor that systemd passes. */
#define SYSTEMD_FIRST 3

/*
 * Returns the number of descriptors that systemd passed to this process, from
 * SYSTEMD_FIRST on.  0: none.  -1: LISTEN_FDS is no number.  Removes the
 * variables from the environment.
 */
int systemd_descriptors(void);

/*
 * Sends assignments, "READY=1\nSTATUS=...", if systemd asked for them
 * (Type=notify).  It does not wait, and ignores errors: systemd itself acts on
 * a message that is missing.
 */
void
systemd_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
