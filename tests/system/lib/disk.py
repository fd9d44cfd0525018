"""A disk that hangs or fails, for oncewrap alone; see disk.c."""
import os

import clocks


class Disk:
    """env: for the programs that have it."""

    def __init__(self, t):
        self.t = t
        self.file = t.path('disk.hangs')
        self.env = dict(os.environ, DISK_HANGS=self.file,
                        DISK_FAILS=t.path('disk.fails'),
                        DISK_FAILS_ONCE=t.path('disk.fails-once'),
                        LD_PRELOAD=clocks.library(t, 'disk'))

    def hang(self):
        self.t.write('disk.hangs')

    def hangs(self):
        """Whether a program waits for it."""
        return os.path.getsize(self.file) > 0

    def go_on(self):
        os.unlink(self.file)

    def fail(self):
        self.t.write('disk.fails')

    def mend(self):
        os.unlink(self.t.path('disk.fails'))

    def fail_once(self, after=0):
        """So many syncs succeed before."""
        # In one step: a sync may remove it at once.
        name = self.t.write('disk.fails-once.new', 'x' * after)
        os.rename(name, self.t.path('disk.fails-once'))

    def has_failed(self):
        return not self.t.exists('disk.fails-once')
