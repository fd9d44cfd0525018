"""What is measured: each function is one configuration, started anew, loaded
and ended; it returns numbers by name."""
import glob
import os
import random
import shutil
import signal
import socket
import statistics
import time

import fcgi
import programs
from work import Failed, command, say, wait_until

BODY = '{"amount": 1099, "currency": "eur", "source": "tok_visa"}'
KEYS = 100000           # of a replay
SEED = 1                # the set of the keys that databases are filled with
MANY, FEW = 10000000, 1000
CAP = 256               # MB
SCALE_WARM = 8          # times as long: until the page cache is full
CONNECTIONS = 32
CROWD = 128             # connections, where programs stay
PROCESSES = 8           # that stay, of each program
DUPLICATES = 100        # connections that ask for a running key


def new_set():
    """Names that no other load has used."""
    return 'new:%d' % random.randrange(1 << 20, 1 << 62)


class Bench:
    def __init__(self, work, seconds, warm):
        self.work, self.seconds, self.warm = work, seconds, warm
        self.lighttpd = programs.Lighttpd(work)
        self.databases, self.kept = {}, []
        self.express = self.postgres = None
        out = programs.command_output(work.program('program'))
        self.body = work.write('run/body', out.split('\r\n\r\n', 1)[1])

    def end(self):
        for process in self.kept + [self.lighttpd]:
            process.end()

    def keep(self, process):
        """One that is started once, and idle while others are measured."""
        self.kept.append(process)
        return process

    # --- loads ------------------------------------------------------------

    def load(self, path, *options, connections=CONNECTIONS, warm=1,
             port=None):
        before = programs.processor_us()
        result = self.work.load(
            port or self.lighttpd.port, path, '-b', BODY, '-c', connections,
            '-t', self.seconds, '-w', self.warm * warm, *options)
        result['cpu'] = (programs.processor_us() - before) / result['all']
        return result

    def first(self, name, connections=CONNECTIONS, warm=1, page='pay',
              port=None):
        return self.load('/%s/%s' % (name, page), '-k', new_set(), '-s', 201,
                         '-f', '-e', self.body, connections=connections,
                         warm=warm, port=port)

    def passing(self, name):
        return self.load('/%s/pay' % name, '-s', 201, '-f', '-e', self.body)

    def replays(self, name, keys=KEYS, warm=1, oldest=0):
        return self.load('/%s/pay' % name, '-k', 'of:%d:%d:%d' % (
            SEED, keys, oldest), '-s', 201, '-r', '-e', self.body, warm=warm)

    def some(self, name, n, *options):
        return self.work.load(self.lighttpd.port, '/%s/pay' % name, '-b',
                              BODY, '-n', n, '-s', 201, '-e', self.body,
                              *options)

    # --- databases --------------------------------------------------------

    def fresh(self):
        path = self.work.path('run', 'fresh.db')
        programs.remove_database(path)
        return path

    def filled(self, keys):
        """A database of so many completed keys of SEED, kept for later."""
        if keys in self.databases:
            return self.databases[keys]
        made = self.work.path('db', 'made.db')
        programs.remove_database(made)
        with programs.oncewrap(self.work, made):
            self.some('once', 1, '-k', 'one:seed', '-f')
        path = self.work.path('db', '%d-%s.db' % (keys, self.work.kind(made)))
        self.databases[keys] = path
        if os.path.exists(path):
            programs.remove_database(made)
            return path
        self.forget(keys)
        if not self.work.room(keys * 800):
            raise Failed('no room for %d keys in %s' % (keys, self.work.dir))
        say('makes a database of %d keys' % keys)
        command([self.work.program('scale'), 'like', made, str(keys),
                 str(SEED)])
        with programs.oncewrap(self.work, made):
            self.some('once', 100, '-k', 'of:%d:%d' % (SEED, keys), '-r')
        for end in ('-wal', '-shm', '-lock', ''):
            if os.path.exists(made + end):
                os.rename(made + end, path + end)
        return path

    def forget(self, keys):
        """Removes the databases of earlier builds: all but one."""
        old = glob.glob(self.work.path('db', '%d-*.db' % keys))
        for path in sorted(old, key=os.path.getmtime)[:-1]:
            programs.remove_database(path)

    # --- what a responder must answer, as it left oncewrap -----------------

    def raw(self, path, key, body=BODY):
        return fcgi.full_request(fcgi.request_params(
            'POST', path, body.encode(), key='"%s"' % key,
            type='application/json', params={
                'SCRIPT_FILENAME': self.work.path(
                    'cgi', os.path.basename(path))}), body.encode())

    def ask(self, address, path, key):
        with fcgi.Conn(address) as conn:
            conn.send(self.raw(path, key))
            return conn.answer()

    def replay_bytes(self):
        file = self.work.path('run', 'replay')
        if not os.path.exists(file):
            with programs.oncewrap(self.work, self.fresh()):
                address = self.work.socket('once')
                self.ask(address, '/once/pay', 'key')
                answer = self.ask(address, '/once/pay', 'key')
            with open(file, 'wb') as f:
                f.write(answer.raw)
        return file


def with_memory(result, *processes):
    result['memory'] = programs.resident_mb(processes)
    return result


# --- replays ----------------------------------------------------------------

def bare_replay(b):
    with programs.bare(b.work, b.replay_bytes()) as server:
        return with_memory(b.replays('bare'), server)


def once_replay(b):
    with programs.oncewrap(b.work, b.filled(KEYS)) as server:
        return with_memory(b.replays('once'), server)


# --- runs of a program ------------------------------------------------------

def once_first(b, workers=CONNECTIONS, slow=False):
    with programs.oncewrap(b.work, b.fresh(), workers, slow) as server:
        return with_memory(b.first('once', workers), server)


def wrap(b, load):
    """fcgiwrap does not wait for its programs: their cost is not known."""
    with programs.fcgiwrap(b.work) as server:
        result = with_memory(load('wrap'), server)
    del result['cpu']
    return result


def wrap_first(b):
    return wrap(b, b.first)


def once_first_slow(b):
    return once_first(b, slow=True)


def once_first_128(b):
    return once_first(b, 128)


def once_first_128_slow(b):
    return once_first(b, 128, True)


def once_pass(b):
    with programs.oncewrap(b.work, b.fresh()) as server:
        return with_memory(b.passing('once'), server)


def wrap_pass(b):
    return wrap(b, b.passing)


def cgi_first(b):
    return b.first('cgi')


# --- programs that stay -----------------------------------------------------

def once_stays(b):
    more = 'handler = %s\nprotocol = fastcgi\nprocesses = %d' % (
        b.work.program('program.fcgi'), PROCESSES)
    with programs.oncewrap(b.work, b.fresh(), CROWD, more=more) as server:
        return with_memory(b.first('once', CROWD), server)


def stay_direct(b):
    argv = [b.work.program('program.fcgi')]
    with programs.Group(b.work, 'stay', argv, PROCESSES) as group:
        return with_memory(b.first('stay', CROWD), *group)


def wrap_crowd(b):
    return wrap(b, lambda name: b.first(name, CROWD))


def go_crowd(b, direct=False):
    with programs.redis(b.work, 'go-redis') as redis, \
            programs.go(b.work, b.lighttpd.go, b.body) as server:
        return with_memory(b.first(
            'go', CROWD, port=b.lighttpd.go if direct else None),
            redis, server)


def go_direct(b):
    """Without lighttpd, whose connections to it are not kept."""
    return go_crowd(b, True)


def fpm_once(b):
    with programs.fpm(b.work, PROCESSES):
        more = 'handler = unix:%s' % b.work.socket('fpm')
        with programs.oncewrap(b.work, b.fresh(), more=more) as server:
            return with_memory(b.first('once', page='pay.php'), server)


def fpm_direct(b):
    with programs.fpm(b.work, PROCESSES) as server:
        return with_memory(b.first('fpm', page='pay.php'), server)


# --- Express and Redis ------------------------------------------------------

def start_express(b):
    """They keep what they have for the whole run: nothing else sees them."""
    if b.express is None:
        folder = programs.install_express(b.work)
        redis = b.keep(programs.redis(b.work))
        b.express = redis, b.keep(programs.express(
            b.work, folder, b.lighttpd.express, b.body))
        say('fills Redis with %d keys' % KEYS)
        b.some('express', KEYS, '-c', CONNECTIONS, '-k', 'new:%d' % SEED,
               '-f')
    return b.express


def express_replay(b):
    processes = start_express(b)
    return with_memory(b.replays('express'), *processes)


def express_first(b):
    processes = start_express(b)
    return with_memory(b.first('express'), *processes)


def direct(b, *options):
    """Without lighttpd, whose connections to Express are not kept."""
    processes = start_express(b)
    return with_memory(b.load('/express/pay', '-s', 201, '-e', b.body,
                              *options, port=b.lighttpd.express),
                       *processes)


def express_direct_replay(b):
    return direct(b, '-k', 'of:%d:%d' % (SEED, KEYS), '-r')


def express_direct_first(b):
    return direct(b, '-k', new_set(), '-f')


# --- many keys and little memory --------------------------------------------

def capped(b, database, load):
    """The load's result, while pages and memory together have a limit."""
    files = [database, database + '-wal']
    with programs.oncewrap(b.work, database) as server:
        cap = programs.Pagecap(b.work, CAP, server.pid, files)
        with cap:
            result = load()
        result['cached'] = cap.left
        return with_memory(result, server)


def few(b):
    """Not the one that is kept: first runs would make it grow."""
    database = b.fresh()
    shutil.copy(b.filled(FEW), database)
    return database


def many_replay(b):
    return capped(b, b.filled(MANY),
                  lambda: b.replays('once', MANY, SCALE_WARM))


def recent_replay(b):
    return capped(b, b.filled(MANY), lambda: b.replays(
        'once', KEYS, SCALE_WARM, MANY - KEYS))


def few_replay(b):
    return capped(b, few(b), lambda: b.replays('once', FEW, SCALE_WARM))


def many_first(b):
    return capped(b, b.filled(MANY),
                  lambda: b.first('once', warm=SCALE_WARM))


def few_first(b):
    return capped(b, few(b), lambda: b.first('once', warm=SCALE_WARM))


# --- duplicates of a running key --------------------------------------------

def hold(b):
    """A program that runs until the gate is opened."""
    gate = b.work.path('run', 'gate')
    if not os.path.exists(gate):
        os.mkfifo(gate)
    path = b.work.write('cgi/hold', '#!/bin/sh\nread -r line <%s\n'
                        'printf "Status: 201 Created\\r\\n\\r\\n"\n' % gate)
    os.chmod(path, 0o755)
    return gate


def once_busy(b, file=None):
    gate = hold(b)
    address = b.work.socket('once')
    with programs.oncewrap(b.work, b.fresh()):
        with fcgi.Conn(address) as first:
            first.send(b.raw('/once/hold', 'held'))
            writer = wait_until(lambda: open_gate(gate), 'the program runs')
            if file is not None:
                with open(file, 'wb') as f:
                    f.write(b.ask(address, '/once/hold', 'held').raw)
                result = None
            else:
                result = b.load('/once/hold', '-k', 'one:held', '-s', 409,
                                connections=DUPLICATES)
            os.write(writer, b'go\n')
            os.close(writer)
            if first.answer().status != 201:
                raise Failed('the held request has failed')
    return result


def open_gate(gate):
    try:
        return os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def bare_busy(b):
    file = b.work.path('run', 'busy')
    if not os.path.exists(file):
        once_busy(b, file)
    with programs.bare(b.work, file):
        return b.load('/bare/pay', '-k', 'one:held', '-s', 409,
                      connections=DUPLICATES)


# --- bytes written ----------------------------------------------------------

def generation(database):
    """Of the log: another one after each checkpoint that emptied it."""
    try:
        with open(database + '-wal', 'rb') as f:
            return f.read(24)[16:]
    except FileNotFoundError:
        return b''


def lone_bytes(b, database, cycles=2, most=40000):
    """What lone first requests write, over whole cycles of the log."""
    with programs.oncewrap(b.work, database) as server:
        begin, marks, requests = generation(database), [], 0
        while len(marks) <= cycles:
            if requests >= most:
                raise Failed('no %d checkpoints in %d requests' % (
                    cycles, requests))
            b.some('once', 10, '-k', new_set(), '-f')
            requests += 10
            now = generation(database)
            if now and now != begin:
                begin = now
                marks.append((requests, programs.written(server.pid)))
    (n0, w0), (n1, w1) = marks[0], marks[-1]
    return {'kib': (w1 - w0) / (n1 - n0) / 1024, 'requests': n1 - n0}


def bytes_empty(b):
    return lone_bytes(b, b.fresh())


def read_in_pages(file, size=4096):
    """A change of one byte counts as one of all that the page cache holds in
    one piece: many pages after a copy, and after the kernel read ahead."""
    with open(file, 'rb') as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for at in range(0, os.fstat(f.fileno()).st_size, size):
            os.pread(f.fileno(), size, at)


def bytes_filled(b):
    database = b.fresh()
    shutil.copy(b.filled(KEYS), database)
    read_in_pages(database)
    return lone_bytes(b, database)


# --- memory, start, size ---------------------------------------------------

def memory(b):
    with programs.oncewrap(b.work, b.fresh()) as server:
        idle = programs.status_kb(server.pid)
        b.first('once')
        b.passing('once')
        b.some('once', 1000, '-k', 'one:again')
        b.load('/once/pay', '-k', 'one:again', '-s', 201, '-r')
        return {'idle': idle / 1024,
                'loaded': programs.status_kb(server.pid) / 1024}


def start(b):
    """The median of a few, for each takes but milliseconds."""
    return {'ms': statistics.median(start_once(b, MANY) for _ in range(5))}


def start_once(b, keys):
    """From exec to the end of an answer to a first request that waits."""
    file = programs.configuration(b.work, b.filled(keys))
    with socket.socket(socket.AF_UNIX) as listener:
        path = b.work.socket('start')
        programs.unlink(path)
        listener.bind(path)
        listener.listen(16)
        with fcgi.Conn(path) as conn:
            conn.send(b.raw('/once/pay', 'k%d' % random.randrange(1 << 60)))
            program = b.work.program('oncewrap')
            log = os.open(b.work.path('log', 'start'),
                          os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            begin = time.monotonic()
            pid = os.posix_spawn(
                program, [program, '-f', file, '-s', 'fd:0'], os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, listener.fileno(), 0),
                              (os.POSIX_SPAWN_DUP2, log, 2)])
            answer = conn.answer()
            took = time.monotonic() - begin
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
            os.close(log)
    if answer.status != 201:
        raise Failed('the first request after a start: %s' % answer.status)
    return took * 1e3


def size(b):
    return {'kib': b.work.stripped() / 1024}
