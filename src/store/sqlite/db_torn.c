/*
 * SQLite maps the index of the log (-shm) into memory.  A handler that shares
 * the database can truncate that file, and then an access to the mapping raises
 * SIGBUS, which would end the process.
 *
 * So the page that is missing becomes one of zeros, of this process alone.
 * SQLite goes on with that, and what it then reads is worth nothing.  What it
 * writes there no other process sees.  So from then on the process uses nothing
 * of what it reads, and takes no COMMIT for done, until it is started anew.
 */
#include "config.h"

#include <sys/mman.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "db_impl.h"

static atomic_bool torn;
static uintptr_t page_size;

/* Returns to the instruction that failed.  If nothing was mapped, that fails
 * again, and ends the process. */
static void
on_bus(int number, siginfo_t *info, void *context)
{
	const uintptr_t address = (uintptr_t)info->si_addr;
	void *page = (char *)info->si_addr - address % page_size;

	(void)context;
	if (info->si_code == BUS_ADRERR &&
	    mmap(page, page_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		atomic_store(&torn, true);
	else
		(void)signal(number, SIG_DFL);
}

void
db_survive_torn(void)
{
	struct sigaction sa;

	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_bus;
	sa.sa_flags = SA_SIGINFO | SA_RESTART;
	(void)sigaction(SIGBUS, &sa, NULL);
}

bool
db_is_torn(void)
{
	return atomic_load(&torn);
}
