"""Servers for the C tests of the PostgreSQL store: see postgres.h.

Reads commands, a line each, and answers each by a line: "ok" with what was
asked for, or "error".  Ends, with its servers, at the end of its input.

    make NAME [PRIMARY]     a server; or a standby
    proxy NAME SERVER
    NAME METHOD ARGUMENT    see tests/system/lib/postgres.py
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                '..', 'system'))

from lib import scratch    # noqa: E402
from lib.postgres import Servers    # noqa: E402


def obey(servers, line):
    words = line.split(' ', 2)
    if words[0] == 'make':
        return servers.make(*words[1:]).uri()
    if words[0] == 'proxy':
        return servers.proxy(*words[1:]).uri()
    method = words[1].replace('-', '_')
    thing = servers.named[words[0]]
    if method == 'caught_up':
        return thing.caught_up(servers.named[words[2]])
    if method == 'set':
        return thing.set(*words[2].split(' ', 1))
    return getattr(thing, method)(*words[2:])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    servers = Servers(scratch.memory())
    try:
        for line in sys.stdin:
            try:
                result = obey(servers, line.rstrip('\n'))
                print('ok', '' if result is None else result, flush=True)
            except Exception as error:      # the test shows it
                print('error', repr(error), flush=True)
    finally:
        servers.close()


main()
