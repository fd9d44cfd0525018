/*
 * The least that a threaded FastCGI responder can do: it reads the request's
 * body and answers with the bytes of a file.
 *
 *	bare SOCKET THREADS FILE
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fcgiapp.h>

#define ANSWER_MAX 16384

static char answer[ANSWER_MAX];
static int answer_length, listener;

static void *
serve(void *unused)
{
	FCGX_Request request;
	char body[4096];

	(void)unused;
	if (FCGX_InitRequest(&request, listener, 0) != 0)
		exit(1);
	while (FCGX_Accept_r(&request) == 0) {
		while (FCGX_GetStr(body, sizeof(body), request.in) > 0)
			;
		FCGX_PutStr(answer, answer_length, request.out);
		FCGX_Finish_r(&request);
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	FILE *f;
	int n;

	if (argc != 4) {
		fputs("usage: bare SOCKET THREADS FILE\n", stderr);
		return 2;
	}
	f = fopen(argv[3], "rb");
	if (f == NULL || FCGX_Init() != 0)
		return 1;
	answer_length = (int)fread(answer, 1, sizeof(answer), f);
	fclose(f);
	listener = FCGX_OpenSocket(argv[1], 1024);
	if (listener < 0)
		return 1;
	for (n = atoi(argv[2]); n > 0; n--)
		if (pthread_create(&thread, NULL, serve, NULL) != 0)
			return 1;
	/* Signals end it. */
	pause();
	return 0;
}
