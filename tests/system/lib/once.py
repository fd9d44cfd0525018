"""Starting, stopping and asking oncewrap and oncectl."""
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import answer
import base
import fcgi
import proc
import shared


# Options of one that waits for a locked database, but not for long.  Its own
# commits have no more time than that: they must not depend on the disk.
HASTY = {'busy_timeout': '300ms', 'durability': 'normal'}


def ini(values):
    return ''.join('%s = %s\n' % (k, v) for k, v in (values or {}).items())


def is_postgres(database):
    return database.startswith('postgresql:')


class Once:
    """One oncewrap with a configuration, a socket and a database of its own.

    server, defaults and routes are options as dicts; routes maps a path to
    such a dict.  conf is more text for the end of the file.
    """

    def __init__(self, t, handler=None, server=None, defaults=None,
                 routes=None, conf='', args=(), start=True, name='once',
                 database=None, env=None, listen=True, prefix=(), owner=None,
                 init=True, **popen):
        self.t = t
        self.name = name
        self.popen = popen
        self.owner = owner or popen.get('user')     # the user it runs as
        self.args = list(args)
        self.prefix = list(prefix)      # a program that becomes oncewrap
        self.env = dict(os.environ if env is None else env)
        self.socket = t.path(name + '.sock')
        self.address = self.socket
        self.database = database or t.database(name)
        self.postgres = is_postgres(self.database)
        if self.postgres:
            self.env['ONCEWRAP_MODULES'] = base.MODULES
            # A test that has several hosts gives each its own.
            ours = os.environ['STATE_DIRECTORY']
            if self.env.get('STATE_DIRECTORY', ours) == ours:
                self.env['STATE_DIRECTORY'] = self.state_of_owner()
        self.listen = listen
        self.server, self.defaults = dict(server or {}), dict(defaults or {})
        if handler:
            self.defaults['handler'] = handler
        self.routes, self.conf = dict(routes or {}), conf
        self.file = t.path(name + '.conf')
        self.process = None
        self.write_conf()
        if self.postgres and init:
            t.init(self.database, self.env)
        t.defer(self.end)
        if start:
            self.start()

    def state_of_owner(self):
        """The folder for the files about its processes."""
        if self.owner is None:
            return os.environ['STATE_DIRECTORY']
        folder = '%s.%s' % (os.environ['STATE_DIRECTORY'], self.owner)
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o755)
            shutil.chown(folder, self.owner)
        return folder

    # --- life ---

    def conf_text(self):
        server = {'database': self.database, 'link': answer.LINK,
                  'io_timeout': '20s'}
        if self.listen:
            server['socket'] = 'unix:' + self.socket
        server.update(self.server)
        text = '[server]\n' + ini(server)
        if self.defaults:
            text += '[defaults]\n' + ini(self.defaults)
        for path, options in self.routes.items():
            text += '[route %s]\n' % path + ini(options)
        return text + self.conf

    def write_conf(self, text=None):
        self.t.write(os.path.basename(self.file),
                     self.conf_text() if text is None else text)

    def start(self, wait=True):
        argv = self.prefix + [base.ONCEWRAP, '-f', self.file] + self.args
        self.begun = len(self.log())
        self.process = self.t.popen(argv, self.name + '.log', cwd=self.t.dir,
                                    env=self.env, stdin=subprocess.DEVNULL,
                                    **self.popen)
        self.t.deferred.pop()       # end() stops it more gently
        if wait and self.listen:
            self.wait_listening()
        return self

    def wait_listening(self):
        def listening():
            assert self.process.poll() is None, 'oncewrap ended with %s: %s' \
                % (self.process.returncode, self.log()[-500:])
            try:
                fcgi.Conn(self.address).close()
                return self.has_started()
            except OSError:
                return False
        base.wait_until(listening, '%s listens' % self.name)

    def has_started(self):
        return 'event=started' in self.log()[self.begun:]

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def term(self):
        self.process.send_signal(signal.SIGTERM)

    def halt(self):
        """Stops it while its loop waits, so that no call of the loop lasts
        until SIGCONT."""
        base.wait_until(
            lambda: any(fields['Name'] == 'loop' and fields['State'][0] == 'S'
                        for fields in proc.thread_status(self.pid).values()),
            'the loop waits')
        self.process.send_signal(signal.SIGSTOP)
        base.wait_until(lambda: proc.state(self.pid) == 'T', 'it is stopped')

    def wait(self, seconds=base.WAIT):
        """Its exit status, once it has ended."""
        try:
            return self.process.wait(seconds * base.SLOW)
        except subprocess.TimeoutExpired:
            raise AssertionError('oncewrap does not end')

    def stop(self, status=0):
        """SIGTERM, and the exit status that it must have."""
        self.term()
        got = self.wait()
        assert got == status, 'oncewrap ended with %d' % got
        base.check_log(self.log())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """At the end of the case: it lives, ends cleanly, and said so."""
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                self.stop()
        finally:
            base.end(self.process)
        base.check_log(self.log())

    def hup(self):
        self.process.send_signal(signal.SIGHUP)

    # --- what it says ---

    def log(self):
        try:
            return self.t.read(self.name + '.log').decode('utf-8', 'replace')
        except FileNotFoundError:
            return ''

    def log_lines(self, pattern):
        return [line for line in self.log().splitlines()
                if re.search(pattern, line)]

    def wait_log(self, pattern, n=1):
        return base.wait_until(
            lambda: (lambda lines: len(lines) >= n and lines)(
                self.log_lines(pattern)), 'log line %r' % pattern)

    # --- requests ---

    def request(self, method='GET', path='/pay', body=b'', timeout=None,
                **kw):
        if isinstance(body, str):
            body = body.encode()
        params = fcgi.request_params(method, path, body, **kw)
        return fcgi.exchange(self.address, params, body,
                             timeout or base.WAIT * base.SLOW)

    def get(self, path='/pay', **kw):
        return self.request('GET', path, **kw)

    def post(self, key=None, body=b'', path='/pay', **kw):
        return self.request('POST', path, body, key=key, **kw)

    def connect(self, timeout=None):
        conn = fcgi.Conn(self.address, timeout or base.WAIT * base.SLOW)
        self.t.defer(conn.close)
        return conn

    def begin(self, key=None, body=b'', path='/pay', keep=False, id=1,
              method='POST', **kw):
        """Sends a request and returns its connection, not waiting."""
        if isinstance(body, str):
            body = body.encode()
        conn = self.connect()
        conn.send(fcgi.full_request(
            fcgi.request_params(method, path, body, key=key, **kw), body,
            id, keep))
        return conn

    def gauge(self, name):
        """A number of <admin_path>/metrics, summed up over the routes where
        each has one; admin_path is /once."""
        answer = self.get('/once/metrics')
        assert answer.status == 200, str(answer)
        lines = re.sub(r'(?<=[{,])route="(?:[^"\\\\]|\\\\.)*",?', '',
                       answer.body.decode()).replace('{}', '')
        found = re.findall(r'^oncewrap_%s (\S+)$' % re.escape(name),
                           re.sub(r',}', '}', lines), re.M)
        assert found, name
        return sum(float(value) for value in found)

    def wait_waiting(self, n=1):
        """Until so many requests wait for another one with their key."""
        self.wait_gauge('requests_waiting', n)

    def wait_gauge(self, name, n):
        base.wait_until(lambda: self.gauge(name) == n,
                        '%d requests wait' % n)

    # --- the store ---

    def local(self, what):
        """The folder or file of that name about this host's processes."""
        if not self.postgres:
            return self.database + what
        found = glob.glob('%s/postgresql-*%s' % (self.env['STATE_DIRECTORY'],
                                                 what))
        assert len(found) == 1, found
        return found[0]

    def attempts(self):
        """The files of attempts."""
        return os.listdir(self.local('-attempts'))

    def sql(self, text, *values):
        """The rows of a statement in the words of SQLite, by a connection of
        its own."""
        db = shared.connect(self.database)
        try:
            cursor = db.execute(text, values)
            return cursor.fetchall() if text.startswith(
                ('SELECT', 'PRAGMA')) else []
        finally:
            db.close()

    def stored(self):
        """All bytes of the store."""
        if not self.postgres:
            return b''.join(self.t.read(os.path.basename(path)) for path in
                            glob.glob(glob.escape(self.database) + '*')
                            if os.path.isfile(path))
        db = shared.connect(self.database)
        db.execute('SET bytea_output = escape')
        rows = [row for name in tables(db) for row, in db.execute(
            'SELECT t::text FROM %s AS t' % name).fetchall()]
        db.close()
        assert rows
        return '\n'.join(rows).encode()

    def plant(self, n, where='true', **values):
        """Copies keys n times.  values are columns that differ, each an
        expression with the number n of the copy; names of keys must."""
        number = 'k.id * 1000000 + n'
        values = dict({'id': number}, **values)
        if self.postgres:
            columns = self.sql("SELECT column_name FROM "
                               "information_schema.columns WHERE table_name "
                               "= 'once_key' AND table_schema = 'public'")
            series = 'generate_series(1, %d) AS s(n)' % n
            values['digest'] = "decode(md5(''||(%s)), 'hex')" % number
            for name in ('key', 'path', 'scope'):
                if name in values:
                    values[name] = "convert_to(%s, 'UTF8')" % values[name]
        else:
            columns = self.sql("SELECT name FROM pragma_table_info"
                               "('once_key')")
            series = '(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT ' \
                'n + 1 FROM r WHERE n < %d) SELECT n FROM r)' % n
        names = [name for name, in columns]
        self.sql('INSERT INTO once_key(%s) SELECT %s FROM once_key k, %s '
                 'WHERE %s' % (', '.join(names), ', '.join(
                     values.get(name, 'k.' + name) for name in names),
                     series, where))

    def effects(self):
        """(topic, payload) of each effect, in order."""
        pieces = ('number = ? ORDER BY piece' if self.postgres else
                  'id / 65536 = ? ORDER BY id')
        return [(topic.decode() if self.postgres else topic,
                 payload if payload is not None else
                 b''.join(piece for piece, in self.sql(
                     'SELECT body FROM once_piece WHERE ' + pieces,
                     (1 << 46) + id)))
                for id, topic, payload in self.sql(
                    'SELECT id, topic, payload FROM once_effect ORDER BY id')]

    def ctl(self, *args, status=0, input=None, database=True):
        """Runs oncectl; its stdout as text."""
        argv = [base.ONCECTL]
        if database:
            argv += ['-d', self.database]
        run = self.t.run(argv + list(args), input=input)
        assert run.returncode == status, 'oncectl %s: exit %d: %r %r' % (
            ' '.join(args), run.returncode, run.stdout, run.stderr)
        return run.stdout.decode()

    def ls(self, *args):
        lines = self.ctl('ls', '--json', *args).splitlines()
        return [json.loads(line) for line in lines]

    def row(self, key, **match):
        """The one row of a key, or None."""
        rows = [r for r in self.ls() if r['key'] == key and
                all(r[k] == v for k, v in match.items())]
        assert len(rows) <= 1, 'several rows: %r' % rows
        return rows[0] if rows else None

    def state(self, key, **match):
        row = self.row(key, **match)
        return row and row['state']

    def wait_state(self, key, state):
        """oncectl is not started before the store has a key in that state."""
        def is_there():
            if not self.postgres and not os.path.exists(self.database):
                return False
            try:
                return self.sql('SELECT 1 FROM once_key WHERE key = ? AND '
                                'state = ?', *found) and \
                    self.state(key) == state
            except sqlite3.Error:       # oncectl says what is wrong
                return self.state(key) == state
        found = (key.encode() if self.postgres else key, state)
        return base.wait_until(is_there, 'key %s is %s' % (key, state))

    def handlers(self):
        """Processes that descend from it."""
        return proc.descendants(self.pid)


def parallel(functions):
    """Calls all at the same time; their results in order."""
    results = [None] * len(functions)
    errors = []
    start = threading.Barrier(len(functions))

    def work(i):
        try:
            start.wait()
            results[i] = functions[i]()
        except Exception as error:        # noqa: handed to the caller
            errors.append(error)
    threads = [threading.Thread(target=work, args=(i,))
               for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


class Background:
    """Calls a function in a thread; result() waits for what it returns."""

    def __init__(self, function):
        self.value = self.error = None

        def work():
            try:
                self.value = function()
            except Exception as error:    # noqa: raised in result()
                self.error = error
        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def done(self):
        return not self.thread.is_alive()

    def result(self, seconds=base.WAIT):
        self.thread.join(seconds * base.SLOW)
        assert not self.thread.is_alive(), 'no answer within %d s' % seconds
        if self.error:
            raise self.error
        return self.value


def elapsed(function):
    began = time.monotonic()
    value = function()
    return time.monotonic() - began, value


def tables(db):
    """Those of oncewrap in PostgreSQL."""
    return [name for name, in db.execute(
        "SELECT tablename FROM pg_tables WHERE tablename LIKE 'once%' "
        'ORDER BY 1').fetchall()]


class Lock:
    """Keeps all others from writing to a store, until it is released."""

    def __new__(cls, t, database):
        return object.__new__(PostgresLock if is_postgres(database) else
                              SqliteLock)


def lock_outcome(t, once, gate, key, **asked):
    """Runs a request that waits at the gate, and whose outcome then cannot be
    recorded.  Returns the lock that keeps it from that."""
    run = Background(lambda: once.post(key, **asked))
    gate.wait()
    lock = Lock(t, once.database)
    gate.open()
    answer.problem(run.result(), 'outcome-not-recorded')
    return lock


class SqliteLock(Lock):
    """The write lock of a database, held by the sqlite3 shell."""

    def __init__(self, t, database):
        self.process = t.popen([base.need('sqlite3'), '-batch', database],
                               stdin=-1, stdout=-1)
        self.say('PRAGMA busy_timeout=5000;\nBEGIN IMMEDIATE;\n'
                 'SELECT 1 + 1 AS locked;\n')
        for line in self.process.stdout:
            if line.strip() == b'2':
                return
        raise AssertionError('no lock on %s' % os.path.basename(database))

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def release(self):
        self.say('ROLLBACK;\n')
        self.process.stdin.close()
        self.process.wait(base.WAIT)


class PostgresLock(Lock):
    """Locks of all tables, as maintenance takes them: they can be read."""

    def __init__(self, t, database):
        self.db = shared.connect(database)
        t.defer(self.db.close)
        names = ', '.join(tables(self.db))
        self.db.execute('BEGIN')
        self.db.execute('LOCK TABLE %s IN EXCLUSIVE MODE' % names)

    def say(self, text):
        self.db.execute(text)

    def release(self):
        self.db.execute('ROLLBACK')
