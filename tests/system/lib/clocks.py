"""The clocks of the programs of a case, for the test to set."""
import mmap
import os
import struct
import subprocess
import time
import uuid

import base
import postgres
import proc

HOUR = 3600
YEAR = 31556952


def clock_file(t, name):
    path = t.write(name, b'\0' * 24)
    with open(path, 'r+b') as f:
        return path, mmap.mmap(f.fileno(), 24)


def library(t, name):
    """A library to preload."""
    path = t.path(name + '.so')
    subprocess.run([os.environ.get('CC', 'cc'), '-O1', '-shared', '-fPIC',
                    '-o', path, os.path.join(base.HERE, name + '.c'),
                    '-ldl'], check=True)
    os.environ['ASAN_OPTIONS'] = ':'.join(
        filter(None, (os.environ.get('ASAN_OPTIONS'),
                      'verify_asan_link_order=0')))
    return path


class Clocks:
    """From now on programs of this case read these; see clock.c.

    A PostgreSQL server is on a host of its own, which neither reboots nor has
    its clock set.
    """

    def __init__(self, t):
        self.t = t
        path, self.map = clock_file(t, 'clock')
        preload = library(t, 'clock')
        self.path, self.boots = path, 0
        os.environ['CLOCK_FILE'] = path
        os.environ['LD_PRELOAD'] = preload
        self.wall_added = self.boot_added = self.slept = 0
        if base.POSTGRES:
            self.server_map = self.clock_of_server(preload)

    def clock_of_server(self, preload):
        """The clock of the server of the case, which the first one starts."""
        path, clock = clock_file(self.t, 'clock.server')
        if self.t.postgres:
            return clock
        server = postgres.Server(self.t.path('postgres'), env=dict(
            os.environ, CLOCK_FILE=path, LD_PRELOAD=preload))
        self.t.defer(server.stop)
        server.keep_promises()
        self.t.postgres = server
        return clock

    def put(self):
        self.map[:] = struct.pack('=qqq', int(self.wall_added * 10**9),
                                  int(self.boot_added * 10**9), self.boots)
        if base.POSTGRES:
            self.server_map[:] = struct.pack('=qqq', int(self.slept * 10**9),
                                             0, 0)

    def wall(self):
        """The wall clock of the programs."""
        return time.time() + self.wall_added

    def now(self):
        """The clock that dates of the store follow."""
        return time.time() + self.slept if base.POSTGRES else self.wall()

    def jump(self, seconds):
        """The wall clock is set."""
        self.wall_added += seconds
        self.put()

    def set_wall(self, seconds):
        self.jump(seconds - self.wall())

    def passes(self, seconds):
        """So long the host sleeps: all clocks but the monotonic go on."""
        self.boot_added += seconds
        self.slept += seconds
        self.jump(seconds)
        if base.POSTGRES:
            base.wait_until(lambda: not self.behind(),
                            'store time follows the server')

    def behind(self):
        """Whether the store of a daemon that lives lags behind its server."""
        pids = [pid for uri in self.t.stores for pid in
                self.t.postgres.command('psql', '-XAtq', '-d', uri, '-c', """
            SELECT pid FROM once_owner, once_meta WHERE time_limit <
            extract(epoch FROM clock_timestamp()) * 1000""").split()]
        return any(proc.alive(int(pid)) for pid in pids)

    def reboot(self, wall=None, uptime=20, name=True):
        """The host was off, and has been up again for uptime seconds."""
        self.boots += 1
        if name:
            self.t.write('clock.%d' % self.boots, str(uuid.uuid4()) + '\n')
        self.boot_added = uptime - time.clock_gettime(time.CLOCK_BOOTTIME)
        if wall is not None:
            self.set_wall(wall)
        self.put()
