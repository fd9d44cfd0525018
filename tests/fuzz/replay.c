/*
 * Runs a fuzz target over its corpus without libFuzzer, so that every input
 * that once mattered is tried at every `make check`.  One case, as TAP.
 *
 * The corpus of fuzz_X is $srcdir/tests/fuzz/corpus/X, or the argument.
 */
#include "config.h"

#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* The input lies in memory of its exact size: a sanitizer sees each byte read
 * beyond it. */
static void
replay(const char *path)
{
	struct stat st;
	uint8_t *input;
	size_t size;
	FILE *f = fopen(path, "rb");

	if (f == NULL || fstat(fileno(f), &st) != 0)
		err(1, "%s", path);
	size = (size_t)st.st_size;
	input = malloc(size > 0 ? size : 1);
	if (input == NULL || fread(input, 1, size, f) != size)
		err(1, "%s", path);
	fclose(f);
	/* The last name printed is the one that failed. */
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(input, size);
	free(input);
}

static int
is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int
main(int argc, char **argv)
{
	char dir[4096], path[8192];
	struct dirent **entry;
	const char *srcdir = getenv("srcdir");
	const char *target = strrchr(argv[0], '_');
	int i, n;

	if (argc == 2)
		snprintf(dir, sizeof(dir), "%s", argv[1]);
	else if (target != NULL && srcdir != NULL)
		snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s", srcdir,
		    target + 1);
	else
		errx(2, "usage: %s corpus", argv[0]);

	puts("1..1");
	fflush(stdout);
	n = scandir(dir, &entry, is_input, alphasort);
	if (n < 0)
		err(1, "%s", dir);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry[i]->d_name);
		replay(path);
		free(entry[i]);
	}
	free(entry);
	if (n == 0)
		printf("not ");
	printf("ok 1 - the %d inputs of %s\n", n, dir);
	return n == 0;
}
