/*
 * A handler that writes each piece of its body as soon as it has read it.  A
 * peer that sends all of the body before it reads any of the answer waits for
 * ever.
 */
#include <unistd.h>

int
main(void)
{
	static const char head[] =
	    "Content-Type: application/octet-stream\r\n\r\n";
	char piece[4096];
	ssize_t n, done, more;

	if (write(1, head, sizeof(head) - 1) != (ssize_t)sizeof(head) - 1)
		return 1;
	while ((n = read(0, piece, sizeof(piece))) > 0)
		for (done = 0; done < n; done += more) {
			more = write(1, piece + done, (size_t)(n - done));
			if (more == -1)
				return 1;
		}
	return n == 0 ? 0 : 1;
}
