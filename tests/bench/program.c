/*
 * The program of the benchmark: small, and quick to start.  It reads the
 * request's body and says that it was paid.
 *
 *	cc -o program program.c				CGI
 *	cc -DFASTCGI -o program.fcgi program.c -lfcgi	FastCGI, it stays
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char answer[] =
    "Status: 201 Created\r\nContent-Type: application/json\r\n\r\n"
    "{\"id\":\"ch_3MmlLrLkdIwHu7ix0snN0B15\",\"object\":\"charge\","
    "\"amount\":1099,\"currency\":\"eur\",\"status\":\"succeeded\"}\n";

#ifdef FASTCGI
#include <fcgiapp.h>

int
main(void)
{
	FCGX_Request request;
	char body[4096];

	if (FCGX_Init() != 0 || FCGX_InitRequest(&request, 0, 0) != 0)
		return 1;
	while (FCGX_Accept_r(&request) == 0) {
		while (FCGX_GetStr(body, sizeof(body), request.in) > 0)
			;
		FCGX_PutStr(answer, (int)strlen(answer), request.out);
	}
	return 0;
}
#else
int
main(void)
{
	const char *length = getenv("CONTENT_LENGTH");
	size_t rest = length == NULL ? 0 : strtoul(length, NULL, 10);
	char body[4096];
	ssize_t n;

	while (rest > 0) {
		n = read(0, body, rest < sizeof(body) ? rest : sizeof(body));
		if (n <= 0)
			return 1;
		rest -= (size_t)n;
	}
	n = write(1, answer, strlen(answer));
	return n == (ssize_t)strlen(answer) ? 0 : 1;
}
#endif
