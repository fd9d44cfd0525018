/*
 * Why a start, or a request, will not find what the configuration names, and
 * the line of the log that ends a start.
 * Nothing here changes a file.
 */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Why the database cannot be used, or the socket or the log not be opened, as
 * far as files, folders and their owners tell.  False: why is a sentence that
 * names the cause and the cure.
 */
bool world_database(const char *file, char *why, size_t size);
bool world_socket(const char *address, char *why, size_t size);
bool world_log(const char *target, char *why, size_t size);

/* The same for the socket of an application that oncewrap does not start. */
bool world_application(const char *path, char *why, size_t size);

/* Whether no group and not all users may put files into the folder of that
 * file, in its place.  False: why as above. */
bool world_private(const char *file, char *why, size_t size);

/* The same for a folder in which files are to be made. */
bool world_folder(const char *path, char *why, size_t size);

/* The same for the folder with the pages of problems. */
bool world_pages(const char *path, char *why, size_t size);

/* Logs why there is no daemon.  Where files, folders and owners may be the
 * cause, check, a function of this header, finds the cure; name may be NULL. */
void world_not_started(const char *error,
    bool (*check)(const char *, char *, size_t), const char *name);

#endif
