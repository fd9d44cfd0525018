/*
 * Whether this process's user may use a file or folder; if not, a sentence that
 * names the cause, and a cure that is safe for a folder of the system too.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include <stdbool.h>
#include <stddef.h>

/* A folder in which files are to be made. */
bool access_folder(const char *path, char *why, size_t size);

/* A file that is there, to be read and written, or written only. */
bool access_file(const char *path, int mode, char *why, size_t size);

#endif
