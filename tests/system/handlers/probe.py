#!/usr/bin/python3 -ISB
"""Says in JSON what a handler sees of the world around it."""
import json
import os
import stat
import sys


def describe(fd):
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return None
    for name in ('REG', 'FIFO', 'SOCK', 'CHR', 'DIR'):
        if getattr(stat, 'S_IS' + name)(mode):
            return name
    return '?'


# The descriptor that listdir opens is gone by the time it is described.
fds = {fd: describe(fd) for fd in map(int, os.listdir('/proc/self/fd'))}
umask = os.umask(0)
os.umask(umask)
with open('/proc/self/status') as f:
    status = dict(line.rstrip('\n').split(':\t', 1) for line in f
                  if ':\t' in line)
body = sys.stdin.buffer.read()
sys.stdout.write('Content-Type: application/json\r\n\r\n')
json.dump({
    'environment': {os.fsencode(n).decode('latin-1'):
                    os.fsencode(v).decode('latin-1')
                    for n, v in os.environ.items()},
    'fds': {fd: kind for fd, kind in fds.items() if kind},
    'seekable': sys.stdin.buffer.seekable(),
    'cwd': os.getcwd(),
    'argv': sys.argv,
    'pid': os.getpid(), 'ppid': os.getppid(),
    'pgid': os.getpgid(0), 'sid': os.getsid(0),
    'umask': umask,
    'uid': os.getuid(), 'gid': os.getgid(), 'groups': sorted(os.getgroups()),
    'blocked': int(status['SigBlk'], 16),
    'ignored': int(status['SigIgn'], 16),
    'nice': os.nice(0),
    'body': body.decode('latin-1'),
}, sys.stdout)
