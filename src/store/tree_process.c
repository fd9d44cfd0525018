/*
 * The files of processes that stay, and their second names: see tree.h.
 */
#include "config.h"

#include <unistd.h>

#include "tree_impl.h"

enum rc
tree_process_new(const char *database, int64_t owner, const char *token,
    int *held, int *note, int64_t *name)
{
	enum rc rc;

	rc = tree_new_file(database, owner, TREE_OF_PROCESS, held, note, name);
	if (rc == RC_OK && (rc = tree_begin(*note, token, 0)) != RC_OK) {
		tree_close_both(held, note);
		tree_process_remove(database, *name);
	}
	return rc;
}

void
tree_process_remove(const char *database, int64_t process)
{
	tree_remove_file(database, process, TREE_OF_PROCESS);
}

enum rc
tree_process_acts(const char *database, int64_t name, int64_t process)
{
	char from[TREE_FILE_LEN], to[TREE_FILE_LEN];
	enum rc rc = RC_OK;
	int folder;

	if ((folder = tree_open_folder(database, false)) == -1)
		return tree_failed(database, "open");
	tree_text_of(process, TREE_OF_PROCESS, from);
	tree_text_of(name, TREE_OF_BY, to);
	if (linkat(folder, from, folder, to, 0) == -1)
		rc = tree_failed(database, "link a file");
	close(folder);
	return rc;
}

void
tree_process_acted(const char *database, int64_t name)
{
	tree_remove_file(database, name, TREE_OF_BY);
}

enum rc
tree_process_each(const char *database,
    enum rc (*visit)(void *, int64_t, const struct tree_note *), void *arg)
{
	return tree_each_of(database, TREE_OF_PROCESS, visit, arg);
}
