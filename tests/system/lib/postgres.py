"""PostgreSQL servers of Debian's packages, each in a folder of its own.

They listen on a Unix socket in that folder, and trust it; the role `secret`
needs the password `s3kr:t/pw`.  No cluster of the system is touched.

A run of tests names a folder for the data of a case's servers, in memory where
it can: POSTGRES_DATA.  Beside it is a cluster as initdb leaves it, made once.
"""
import ctypes
import fcntl
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import threading

from lib import proc, scratch
from lib.base import Skip, wait_until

# Nothing here must outlive a crash of the machine.
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '%s'
fsync = off
full_page_writes = off
shared_buffers = 16MB
max_connections = 400
dynamic_shared_memory_type = mmap
wal_level = replica
max_wal_senders = 4
wal_receiver_status_interval = 1
wal_retrieve_retry_interval = 100ms
log_min_messages = warning
timezone = UTC
"""
HBA = """
local all secret scram-sha-256
local replication all trust
local all all trust
"""

# What a trap for a COMMIT becomes when the COMMIT comes: see Proxy.cut_at().
AT_COMMIT = {'commit': 'question', 'hold-commit': 'hold-question',
             'answer-commit': 'answer'}


def program(name):
    """Of the newest version; POSTGRES_BIN names the folder of another one."""
    folder = os.environ.get('POSTGRES_BIN')
    if folder:
        return os.path.join(folder, name)
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/' + name))
    if not found:
        raise Skip('needs PostgreSQL: apt-get install postgresql')
    return found[-1]


def account():
    """Arguments for a process: postgres refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam('postgres')
    return {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []}


class Pq:
    """Statements by libpq: a psql takes longer to start than most of them to
    run."""

    library = None
    FUNCTIONS = {'PQconnectdb': (ctypes.c_void_p, ctypes.c_char_p),
                 'PQstatus': (ctypes.c_int, ctypes.c_void_p),
                 'PQerrorMessage': (ctypes.c_char_p, ctypes.c_void_p),
                 'PQexec': (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
                 'PQresultStatus': (ctypes.c_int, ctypes.c_void_p),
                 'PQntuples': (ctypes.c_int, ctypes.c_void_p),
                 'PQnfields': (ctypes.c_int, ctypes.c_void_p),
                 'PQgetvalue': (ctypes.c_char_p, ctypes.c_void_p,
                                ctypes.c_int, ctypes.c_int),
                 'PQclear': (None, ctypes.c_void_p),
                 'PQfinish': (None, ctypes.c_void_p)}
    CONNECTED, COMMAND_OK, TUPLES_OK = 0, 1, 2

    @classmethod
    def load(cls):
        if cls.library is None:
            cls.library = ctypes.CDLL('libpq.so.5')
            for name, (result, *takes) in cls.FUNCTIONS.items():
                function = getattr(cls.library, name)
                function.restype, function.argtypes = result, takes
        return cls.library

    @classmethod
    def rows(cls, uri, text):
        """Those of the last statement, as lists of bytes."""
        pq = cls.load()
        connection = pq.PQconnectdb(uri.encode())
        try:
            assert pq.PQstatus(connection) == cls.CONNECTED, \
                pq.PQerrorMessage(connection).decode()
            result = pq.PQexec(connection, text.encode())
            try:
                assert pq.PQresultStatus(result) in (
                    cls.COMMAND_OK, cls.TUPLES_OK), \
                    pq.PQerrorMessage(connection).decode()
                return [[pq.PQgetvalue(result, row, column)
                         for column in range(pq.PQnfields(result))]
                        for row in range(pq.PQntuples(result))]
            finally:
                pq.PQclear(result)
        finally:
            pq.PQfinish(connection)


def query(uri, text):
    """Runs statements, in one transaction if they begin none; the last one's
    rows as text, a line each, with | between columns."""
    return '\n'.join(b'|'.join(row).decode()
                     for row in Pq.rows(uri, text)).strip()


def own(folder):
    if os.geteuid() == 0:
        user = pwd.getpwnam('postgres')
        os.chown(folder, user.pw_uid, user.pw_gid)


class Server:
    """A primary; or, of another server, its standby."""

    def __init__(self, folder, primary=None, env=None, settings=''):
        self.folder = folder
        self.env = env
        self.data = os.path.join(os.environ.get('POSTGRES_DATA', folder),
                                 'data-' + os.urandom(6).hex())
        self.process = None
        for place in (folder, os.path.dirname(self.data)):
            os.makedirs(place, 0o755, exist_ok=True)
            own(place)
        if primary:
            self.command('pg_basebackup', '-D', self.data, '-R', '-X',
                         'stream', '-C', '-S', os.path.basename(folder),
                         '-c', 'fast', '-d',
                         primary.uri('&application_name=standby'))
            self.write('postgresql.conf', SETTINGS % folder)
        else:
            self.init()
            self.write('postgresql.conf', SETTINGS % folder + settings)
            self.write('pg_hba.conf', HBA)
        self.start()
        if not primary:
            self.sql("CREATE ROLE secret LOGIN PASSWORD 's3kr:t/pw'")

    def init(self):
        """Its cluster: a copy, unless the case has one already, since copies
        have one identity."""
        place = os.path.dirname(self.data)
        if place == self.folder or os.listdir(place):
            self.initdb(self.data)
            return
        run = os.path.dirname(place)
        own(run)
        template = os.path.join(run, 'template')
        with open(template + '.lock', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(template):
                self.initdb(template)
        subprocess.run(['cp', '-a', template, self.data], check=True)

    def initdb(self, folder):
        self.command('initdb', '-D', folder, '-U', 'postgres', '-N', '-E',
                     'UTF8', '--locale=C.UTF-8', '-A', 'trust',
                     '--wal-segsize=1')

    def write(self, name, text):
        with open(os.path.join(self.data, name), 'w') as f:
            f.write(text)

    def command(self, name, *arguments):
        done = subprocess.run([program(name), *arguments], text=True,
                              stdin=subprocess.DEVNULL, cwd=self.folder,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **account())
        assert done.returncode == 0, '%s: %s' % (name, done.stdout)
        return done.stdout

    def uri(self, more='', user='postgres'):
        return 'postgresql:///postgres?host=%s&user=%s%s' % (
            self.folder, user, more)

    def keep_promises(self):
        """With the settings that durability = full wants."""
        for name in ('fsync', 'full_page_writes'):
            self.set(name, 'on')

    def database(self):
        """The URI of a new, empty database."""
        name = 'db_' + os.urandom(6).hex()
        self.sql('CREATE DATABASE %s TEMPLATE template0' % name)
        return self.uri().replace('/postgres?', '/%s?' % name)

    def drop(self, uri):
        """Of database(): 8 MB and more that the run has no more use for."""
        name = re.match('postgresql:///([^?]+)', uri)[1]
        self.sql('DROP DATABASE %s WITH (FORCE)' % name)

    def sql(self, text):
        """See query()."""
        return query(self.uri(), text)

    # --- its life ---

    def start(self):
        with open(os.path.join(self.folder, 'log'), 'a') as log:
            self.process = subprocess.Popen(
                [program('postgres'), '-D', self.data], stdout=log,
                stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                start_new_session=True, preexec_fn=proc.end_with_parent,
                env=self.env,
                **account())
        wait_until(self.is_ready, 'PostgreSQL is ready')

    def is_ready(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, 'log')) as log:
                raise AssertionError('postgres ended with %d: %s' % (
                    self.process.returncode, log.read()[-2000:]))
        try:
            with open(os.path.join(self.data, 'postmaster.pid')) as f:
                lines = f.read().split('\n')
        except FileNotFoundError:
            return False
        # One of before a crash is there, too.
        return lines[0] == str(self.process.pid) and len(lines) > 7 and \
            lines[7].strip() == 'ready'

    def signal_all(self, number):
        for pid in [self.process.pid] + proc.descendants(self.process.pid):
            proc.kill(pid, number)

    def stop(self, number=signal.SIGINT):
        """SIGINT: fast; SIGQUIT: at once."""
        if self.process and self.process.poll() is None:
            self.signal_all(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait(30)

    def restart(self):
        self.stop()
        self.start()

    def kill(self):
        """As by a power failure.  A process that outlives the others, because
        it was just being started or ends slowly, keeps their shared memory,
        and the server does not start again."""
        proc.kill(self.process.pid, signal.SIGSTOP)
        wait_until(lambda: (proc.state(self.process.pid) or 'Z') in 'TZ',
                   'PostgreSQL starts no process')
        left = proc.descendants(self.process.pid)
        self.signal_all(signal.SIGKILL)
        self.process.wait(30)
        wait_until(lambda: not any(proc.alive(pid) for pid in left),
                   'no process of PostgreSQL is left')

    def freeze(self):
        self.signal_all(signal.SIGSTOP)

    def thaw(self):
        self.signal_all(signal.SIGCONT)

    def promote(self):
        self.sql('SELECT pg_promote()')

    def set(self, name, value):
        """Changes a setting, and waits until it is in effect."""
        self.sql("ALTER SYSTEM SET %s = '%s'" % (name, value))
        self.sql('SELECT pg_reload_conf()')
        wait_until(lambda: self.sql('SHOW ' + name) == value,
                   '%s is %s' % (name, value))

    def synchronous(self, names):
        """Commits wait for that standby; '': for none."""
        self.set('synchronous_standby_names', names)
        # The checkpointer tells the others, once it has read the setting.
        self.sql('CHECKPOINT')

    def caught_up(self, standby):
        """The standby has what has been committed."""
        here = self.sql('SELECT pg_current_wal_lsn()')
        wait_until(lambda: standby.sql(
            "SELECT pg_last_wal_replay_lsn() >= '%s'" % here) == 't',
            'the standby has caught up')


class Proxy:
    """TCP in front of a server's socket, which can be frozen or cut."""

    def __init__(self, server, address='127.0.0.1'):
        self.address = address
        self.target = '%s/.s.PGSQL.5432' % server.folder
        self.lock = threading.Condition()
        self.pairs = []
        self.frozen = False
        self.trap = None        # see cut_at()
        self.away = False       # new connections are refused
        self.leave = False      # away from the cut on
        self.commits = set()    # the names of prepared COMMITs
        self.rows = set()       # those of statements that make a session's row
        self.making = set()     # clients whose transaction does
        self.held = None        # a question that was kept, and its server
        self.every = 0          # each COMMIT of that number is cut
        self.counted = 0
        self.times = 0          # so often; 0: without an end
        self.side = None        # 'question' or 'answer' of it
        self.socket = socket.create_server((address, 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def uri(self, more='', user='postgres'):
        return 'postgresql://%s@%s:%d/postgres?sslmode=disable' \
            '&gssencmode=disable%s' % (user, self.address, self.port, more)

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            if self.away:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                server.close()
                continue
            with self.lock:
                self.pairs.append((client, server))
            for way in ((client, server, 'question'),
                        (server, client, 'answer')):
                threading.Thread(target=self.copy, args=way,
                                 daemon=True).start()

    def to(self, uri):
        """The URI of a database of that server, by way of this proxy."""
        name = re.match('postgresql:///([^?]+)', uri).group(1)
        return self.uri().replace('/postgres?', '/%s?' % name)

    def is_cut(self, what, client):
        """Whether that COMMIT is cut: see cut_commits()."""
        making = client in self.making
        if what == 'answer':
            self.making.discard(client)
        if making or not self.every or what != self.side:
            return False
        self.counted += 1
        if self.counted % self.every != 0:
            return False
        self.times -= 1
        if self.times == 0:
            self.every = 0
        return True

    def copy(self, source, sink, what):
        while True:
            try:
                data = source.recv(65536)
            except OSError:
                data = b''
            with self.lock:
                self.lock.wait_for(lambda: not self.frozen)
                client = source if what == 'question' else sink
                commit = b'COMMIT\0' in data if what == 'answer' else \
                    self.is_commit(data, client)
                if commit and what == 'question':
                    self.trap = AT_COMMIT.get(self.trap, self.trap)
                if commit and self.is_cut(what, client):
                    data = b''
                if data and self.trap in (what, 'hold-' + what):
                    if self.leave:
                        self.go_away(source)
                    if self.trap != what:
                        # The server's side stays open.
                        self.held = (sink, data)
                        self.shut(source)
                        self.trap = None
                        self.lock.notify_all()
                        return
                    self.trap = None
                    data = b''
            try:
                if data:
                    sink.sendall(data)
                    continue
            except OSError:
                pass
            with self.lock:
                if self.held and source is self.held[0] or not data and \
                        self.held and sink is self.held[0]:
                    return
            self.shut(source)
            self.shut(sink)
            return

    def go_away(self, last):
        """No server is found any more, and no connection but one stays."""
        self.away = True
        for pair in self.pairs:
            if last not in pair:
                for s in pair:
                    self.shut(s)

    def is_commit(self, data, client):
        """Whether the client executes a COMMIT there."""
        if self.executes(self.rows, rb'INSERT INTO once_session\(', data):
            self.making.add(client)
        return self.executes(self.commits, rb'COMMIT;\0', data)

    @staticmethod
    def executes(names, text, data):
        """Whether a statement of that text is executed there, by a name that
        it was prepared by; the name is the same in all connections."""
        names.update(re.findall(rb'P....(\w+)\0' + text, data, re.S))
        return any(re.search(rb'B....\0' + name + rb'\0', data, re.S)
                   for name in names)

    @staticmethod
    def shut(s):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def freeze(self):
        """Nothing moves; connections stay."""
        with self.lock:
            self.frozen = True

    def thaw(self):
        with self.lock:
            self.frozen = False
            self.lock.notify_all()

    def refuse(self):
        """No server is found, until back() is called."""
        self.away = True
        self.cut()

    def cut(self):
        """Ends all connections."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for s in pair:
                self.shut(s)

    def cut_at(self, what):
        """Ends the connection of the next 'question' or 'answer', which
        does not arrive; 'hold-question' arrives when release() is called.
        'commit' and 'hold-commit' are the next question that is a COMMIT,
        'answer-commit' is its answer.  'none' is no trap.  With ' away' no
        server is found from then on, until back() is called."""
        with self.lock:
            self.trap, _, away = what.partition(' ')
            self.leave = away == 'away'

    def back(self):
        with self.lock:
            self.away = self.leave = False

    def cut_commits(self, every, side='answer', times=0):
        """Ends the connection of each COMMIT of that number, so many times; 0:
        of none, and without an end.  The 'question' does not arrive, or its
        'answer' does not.  The COMMIT that makes a session's row is not
        counted: how many there are depends on what the threads do."""
        with self.lock:
            self.every, self.side = every, side
            self.counted, self.times = 0, times

    def release(self):
        with self.lock:
            sink, data = self.held
            self.held = None
        try:
            sink.sendall(data)
        except OSError:         # the server has given it up
            pass

    def close(self):
        self.socket.close()
        self.thaw()
        self.cut()


class Servers:
    """Named servers and proxies, for tests in other languages."""

    def __init__(self, where=None):
        """Makes a folder for them; where: see scratch.folder()."""
        self.folder = scratch.folder('once-pg-', where)
        self.named = {}

    def make(self, name, primary=None):
        server = Server(os.path.join(self.folder, name),
                        self.named[primary] if primary else None)
        self.named[name] = server
        return server

    def proxy(self, name, server):
        self.named[name] = Proxy(self.named[server])
        return self.named[name]

    def close(self):
        for thing in self.named.values():
            if isinstance(thing, Server):
                thing.stop(signal.SIGQUIT)
            else:
                thing.close()
        shutil.rmtree(self.folder, ignore_errors=True)
