/*
 * The files of the folder "<database>-attempts", and their names: see
 * attempt_lock.h.
 */
#ifndef ATTEMPT_FILE_H
#define ATTEMPT_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* What follows the name: of the file of a process that stays, and of the second
 * name that the file has for an attempt. */
#define ATTEMPT_FILE_PROCESS ".process"
#define ATTEMPT_FILE_BY      ".by"

#define ATTEMPT_FILE_LEN (16 + sizeof(ATTEMPT_FILE_PROCESS))

/* The file's name; and the number that such a name stands for, <= 0 if the file
 * is not ours. */
void
attempt_file_text(int64_t name, const char *kind, char text[ATTEMPT_FILE_LEN]);
int64_t attempt_file_number(const char *text, const char *kind);

/* A random name of this boot. */
int64_t attempt_file_new_name(void);

/* Whether its name says that the file was made in another boot of this host;
 * and whether it says in this one.  Neither, where a boot has no name. */
bool attempt_file_is_past(int64_t name);
bool attempt_file_is_of_this_boot(int64_t name);

/* Opens the folder, and creates it if asked; -1 and errno. */
int attempt_file_folder(const char *database, bool make);

/* Opens the file to read; -1 and errno. */
int attempt_file_open(const char *database, int64_t name, const char *kind);

void attempt_file_remove(const char *database, int64_t name, const char *kind);

#endif
