/*
 * Which file of an SQLite database this process may not use, and the cure: for
 * a start that is refused, for -t, for the health page and for oncectl.
 */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* How the files are used. */
enum store_files_use {
	STORE_FILES_READ,  /* by oncectl */
	STORE_FILES_WRITE, /* by a handler */
	STORE_FILES_DAEMON /* by oncewrap: the lock file as well */
};

/* The first file that may not be used, and the errno for it. */
struct store_files_bar {
	int error;
	char file[4112];
	char cure[512]; /* a sentence to be read after the name of the file */
};

/*
 * Whether the sysctl fs.protected_regular (proc(5)) keeps that user, or with -1
 * other users, from a file of a folder with the sticky bit.  It refuses open(2)
 * with O_CREAT, which is how SQLite opens its files.  Root is not exempt.
 */
bool store_files_are_protected(
    const struct stat *folder, const struct stat *file, uid_t user);

/* The size of the database's file with that suffix (bytes); 0 if there is
 * none. */
int64_t store_files_size(const char *database, const char *suffix);

/* False, with *bar: a file that exists may not be used so. */
bool store_files_check(const char *database, enum store_files_use use,
    struct store_files_bar *bar);

/* Gives the database and the files beside it to the database's group. */
void store_files_share(const char *database);

#endif
