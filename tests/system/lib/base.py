"""Where things are, how long to wait, and what machines must have."""
import os
import re
import shutil
import socket
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, '..', '..', '..'))
BUILDDIR = os.path.abspath(os.environ.get('BUILDDIR') or
                           os.path.join(TOP, 'build'))
# Where the programs find their module.
MODULES = os.environ.setdefault('ONCEWRAP_MODULES', BUILDDIR)
os.environ.setdefault('ONCEWRAP_DATA', os.path.join(TOP, 'src', 'run'))
ONCEWRAP = os.environ.get('ONCEWRAP') or os.path.join(BUILDDIR, 'oncewrap')
ONCECTL = os.environ.get('ONCECTL') or os.path.join(BUILDDIR, 'oncectl')
EXAMPLES = os.path.join(TOP, 'examples')
POSTGRES = None     # the server that has the databases; None: they are files
WAIT = 20           # seconds until a condition counts as missed
SLOW = 1.0


def places():
    """The places of a request (engine.c), in the order of its life."""
    path = os.path.join(TOP, 'src', 'oncewrap', 'engine.c')
    with open(path) as f:
        return re.findall(r'^\tROW\((\w+), ', f.read(), re.M)


class Skip(Exception):
    """This machine cannot run the case."""


def wait_until(condition, what, seconds=WAIT):
    """Polls until condition() is true; returns what it returned.  It may be
    noticed late by a tenth of the time that it took."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > seconds * SLOW:
            raise AssertionError('not within %g s: %s' % (seconds, what))
        time.sleep(min(max(0.005, waited / 10), 0.1))


def end(process, seconds=5):
    """Kills and reaps it."""
    if process.poll() is None:
        process.kill()
    process.wait(seconds)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


def need_root():
    if os.geteuid() != 0:
        raise Skip('needs root')


def need(program):
    path = shutil.which(program, path=os.environ.get('PATH', '') +
                        ':/usr/sbin:/sbin')
    if not path:
        raise Skip('needs %s' % program)
    return path


def need_others_processes():
    """/proc shows those of other users to a user that is not root."""
    with open('/proc/self/mountinfo') as f:
        proc = [line for line in f if line.split()[4] == '/proc']
    if 'hidepid=' in proc[-1]:
        raise Skip('needs /proc without hidepid')


def listener(t, name='inherited.sock'):
    """A unix socket that listens, to be inherited."""
    s = socket.socket(socket.AF_UNIX)
    s.bind(t.path(name))
    s.listen(64)
    t.defer(s.close)
    return s


def check_log(text):
    """No assertion and no sanitizer has spoken, and nothing has kept all
    requests waiting."""
    for sign in ('Sanitizer', 'runtime error:', 'Assertion', 'assert(',
                 '==ERROR', 'stack smashing', 'event=loop-waited'):
        assert sign not in text, 'in the log: %s' % \
            text[max(0, text.index(sign) - 200):][:800]
