"""Folders of a run of tests, in memory or on the disk.

A run that is killed removes nothing.  So each folder has a file that its run
has locked, and the next run removes the folders whose run has ended.
"""
import fcntl
import glob
import os
import shutil
import tempfile

LOCK = '.run'
held = []       # open while this process lives


def memory():
    """A folder in memory with room for servers, or None."""
    folder = '/dev/shm'
    try:
        fs = os.statvfs(folder)
        with open('/proc/meminfo') as f:
            lines = dict(line.split(':') for line in f)
    except OSError:
        return None
    # Such a file system may promise more than the machine has.
    room = min(fs.f_bavail * fs.f_frsize,
               int(lines['MemAvailable'].split()[0]) << 10)
    return folder if os.access(folder, os.W_OK) and room > 4 << 30 else None


def folder(prefix, where=None):
    """A new folder, in the usual place if where is None."""
    path = tempfile.mkdtemp(prefix=prefix, dir=where)
    os.chmod(path, 0o755)
    remove_left(os.path.dirname(path), prefix)
    # It has its name when it is locked.
    held.append(open(os.path.join(path, LOCK + '.new'), 'w'))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
    os.rename(held[-1].name, os.path.join(path, LOCK))
    return path


def keep(path):
    """No later run removes the folder."""
    os.unlink(os.path.join(path, LOCK))


def remove_left(where, prefix):
    for name in glob.glob(os.path.join(where, prefix + '*', LOCK)):
        try:
            with open(name) as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(os.path.dirname(name), ignore_errors=True)
        except OSError:     # its run goes on, or is another user's
            pass
