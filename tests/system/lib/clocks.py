"""The clocks of the programs of a case, for the test to set."""
import mmap
import os
import struct
import subprocess
import time
import uuid

import base

HOUR = 3600
YEAR = 31556952


class Clocks:
    """From now on programs of this case read these; see clock.c."""

    def __init__(self, t):
        self.t = t
        path = t.write('clock', b'\0' * 24)
        with open(path, 'r+b') as f:
            self.map = mmap.mmap(f.fileno(), 24)
        library = t.path('clock.so')
        subprocess.run([os.environ.get('CC', 'cc'), '-O1', '-shared', '-fPIC',
                        '-o', library, os.path.join(base.HERE, 'clock.c'),
                        '-ldl'], check=True)
        self.path, self.boots = path, 0
        os.environ['CLOCK_FILE'] = path
        os.environ['LD_PRELOAD'] = library
        os.environ['ASAN_OPTIONS'] = ':'.join(
            filter(None, (os.environ.get('ASAN_OPTIONS'),
                          'verify_asan_link_order=0')))
        self.wall_added = self.boot_added = 0

    def put(self):
        self.map[:] = struct.pack('=qqq', int(self.wall_added * 10**9),
                                  int(self.boot_added * 10**9), self.boots)

    def now(self):
        """The wall clock of the programs."""
        return time.time() + self.wall_added

    def jump(self, seconds):
        """The wall clock is set."""
        self.wall_added += seconds
        self.put()

    def set_wall(self, seconds):
        self.jump(seconds - self.now())

    def passes(self, seconds):
        """So long the host sleeps: all clocks but the monotonic go on."""
        self.boot_added += seconds
        self.jump(seconds)

    def reboot(self, wall=None, uptime=20, name=True):
        """The host was off, and has been up again for uptime seconds."""
        self.boots += 1
        if name:
            self.t.write('clock.%d' % self.boots, str(uuid.uuid4()) + '\n')
        self.boot_added = uptime - time.clock_gettime(time.CLOCK_BOOTTIME)
        if wall is not None:
            self.set_wall(wall)
        self.put()
