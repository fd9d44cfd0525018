#!/bin/sh
# Names the caller and the attempt.  A new answer at each run, so that
# a replay can be told from a second run.
printf 'Content-Type: text/plain\r\n\r\n'
printf 'Hello %s, this is attempt %s of key %s.\n' \
    "${REMOTE_USER:-stranger}" "${ONCE_ATTEMPT:--}" "${ONCE_KEY:--}"
printf '%s, process %d\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" $$
