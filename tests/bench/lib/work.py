"""Where the benchmark works: builds, programs, databases, and what is known of
the machine."""
import fcntl
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.normpath(os.path.join(HERE, '..', '..'))
CFLAGS = ('-O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wshadow '
          '-Wstrict-prototypes -Wmissing-prototypes -Wvla').split()
PROGRAMS = {
    'load': [],
    'bare': ['-lfcgi', '-pthread'],
    'pagecap': [],
    'program': [],
    'program.fcgi': ['-DFASTCGI', '-lfcgi'],
    'slowsync.so': ['-shared', '-fPIC'],
}
MODULE = 'oncewrap-postgresql.so'
DIRECTORY = os.path.join(os.environ.get('TMPDIR') or '/var/tmp',
                         'oncewrap-bench-%d' % os.getuid())


class Failed(Exception):
    """The benchmark cannot go on, or what it measures is wrong."""


class Missing(Exception):
    """What is to be compared is not on this machine."""


def say(text):
    print('# %s' % text, file=sys.stderr, flush=True)


def command(argv, **more):
    """Runs it quietly; its output is shown if it fails."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **more)
    if done.returncode != 0:
        raise Failed('%s: status %d\n%s' % (
            ' '.join(argv), done.returncode, done.stdout[-4000:]))
    return done.stdout


def wait_until(condition, what, seconds=20):
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise Failed('not within %g s: %s' % (seconds, what))
        time.sleep(0.002)


def find(program):
    return shutil.which(program, path=os.environ.get('PATH', '') +
                        ':/usr/sbin:/sbin')


class Work:
    """The folder where all of it lies."""

    def __init__(self, directory, builddir):
        self.dir = os.path.abspath(directory)
        os.makedirs(self.dir, exist_ok=True)
        # Two at once would measure each other.
        self.lock = open(self.path('lock'), 'w')
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say('waits for another run to end')
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        for name in ('bin', 'cgi', 'db', 'run', 'log', 'tmp'):
            os.makedirs(self.path(name), exist_ok=True)
        for folder in ('run', 'log'):
            for name in os.listdir(self.path(folder)):
                self.remove(folder, name)
        # A unix socket's path has at most 107 bytes.
        self.sockets = tempfile.mkdtemp(prefix='once-bench-')
        self.build = builddir and os.path.abspath(builddir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def socket(self, name):
        return os.path.join(self.sockets, name)

    def end(self):
        shutil.rmtree(self.sockets, ignore_errors=True)

    def write(self, name, text):
        with open(self.path(name), 'w') as f:
            f.write(text)
        return self.path(name)

    def remove(self, *names):
        path = self.path(*names)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def make(self):
        """A release build unless there is one, and the programs."""
        try:
            command([os.path.join(TOP, 'tests', 'packages'), 'bench'])
        except Failed as error:
            say(str(error))
        for program in ('lighttpd', 'fcgiwrap'):
            if not find(program):
                raise Failed('%s is not here' % program)
        env = {k: v for k, v in os.environ.items()
               if k not in ('MAKEFLAGS', 'MAKELEVEL', 'MFLAGS')}
        if self.build is None:
            self.build = self.path('build')
            if not os.path.exists(os.path.join(TOP, 'configure')):
                command(['autoreconf', '-i'], cwd=TOP, env=env)
            mark = os.path.join(self.build, '.of')
            if not (os.path.exists(mark) and open(mark).read() == TOP):
                self.remove('build')
                os.makedirs(self.build)
                command([os.path.join(TOP, 'configure'), 'CFLAGS=-O2'],
                        cwd=self.build, env=env)
                with open(mark, 'w') as f:
                    f.write(TOP)
        for target in ('all', 'tests/bench/scale'):
            command(['make', '-j%d' % os.cpu_count(), target],
                    cwd=self.build, env=env)
        for point in ('RECORD_CHECKS', 'FAULT_POINTS'):
            with open(os.path.join(self.build, 'config.h')) as f:
                if '#define %s ' % point in f.read():
                    say('%s is no release build: it has %s' %
                        (self.build, point))
        for name, flags in PROGRAMS.items():
            self.compile(name, flags)
        shutil.copy(self.path('bin', 'program'), self.path('cgi', 'pay'))
        shutil.copy(os.path.join(HERE, 'pay.php'), self.path('cgi'))
        # The running program must not be replaced by a build meanwhile.
        for name in ('oncewrap', 'oncectl'):
            self.remove('bin', name)
            shutil.copy(os.path.join(self.build, name), self.path('bin'))
        shutil.copy(os.path.join(self.build, 'tests/bench/scale'),
                    self.path('bin'))
        self.remove('bin', MODULE)
        if os.path.exists(self.module()):
            shutil.copy(self.module(), self.path('bin'))

    def compile(self, name, flags):
        source = os.path.join(HERE, os.path.splitext(name)[0] + '.c')
        out = self.path('bin', name)
        if (os.path.exists(out) and os.path.getmtime(out) >
                os.path.getmtime(source)):
            return
        command([os.environ.get('CC', 'cc')] + CFLAGS + ['-o', out, source] +
                flags)

    def module(self):
        """The store in PostgreSQL; there is none without libpq."""
        return os.path.join(self.build, MODULE)

    def program(self, name):
        return self.path('bin', name)

    def stripped(self):
        out = self.path('tmp', 'stripped')
        command(['strip', '-o', out, self.program('oncewrap')])
        return os.path.getsize(out)

    def kind(self, database):
        """A name for what this build makes of a database."""
        text = hashlib.sha256()
        for name in ('scale.c', 'program.c', 'keyname.h'):
            with open(os.path.join(HERE, name), 'rb') as f:
                text.update(f.read())
        db = sqlite3.connect(database)
        for query in ('PRAGMA user_version', 'PRAGMA page_size',
                      'SELECT sql FROM sqlite_schema ORDER BY name'):
            text.update(repr(db.execute(query).fetchall()).encode())
        db.close()
        return text.hexdigest()[:12]

    def room(self, size):
        """Whether the disk has that much room, and some more."""
        return shutil.disk_usage(self.dir).free > size + (4 << 30)

    def load(self, port, path, *options):
        """What load(1) says, as a dictionary; wrong answers are failures."""
        out = command([self.program('load')] + [str(o) for o in options] +
                      [str(port), path])
        result = json.loads(out)
        wrong = [name for name in ('failed', 'wrong_status', 'wrong_body',
                                   'wrong_replay') if result[name]]
        if wrong or not result['requests']:
            raise Failed('%s: %s' % (path, out.strip()))
        return result


def processor():
    with open('/proc/cpuinfo') as f:
        for line in f:
            if re.match('model name|Model', line):
                return line.split(':', 1)[1].strip()
    return os.uname().machine


def file_system(path):
    """Type of the file system that path is on."""
    best, kind = '', '?'
    with open('/proc/self/mounts') as f:
        for line in f:
            where, name = line.split()[1:3]
            inside = os.path.realpath(path) + '/'
            if (inside.startswith(where.rstrip('/') + '/') and
                    len(where) >= len(best)):
                best, kind = where, name
    return kind


def system():
    try:
        with open('/etc/os-release') as f:
            values = dict(line.rstrip().split('=', 1) for line in f
                          if '=' in line)
        name, version = values['NAME'], values.get('VERSION_ID', '""')
        return '%s %s' % (name.strip('"').split('/')[0].split(' GNU')[0],
                          version.strip('"'))
    except (OSError, KeyError):
        return os.uname().sysname


def machine(work):
    return '%d cores, %s, %s, %s' % (
        os.cpu_count(), processor(), file_system(work.dir), system())
