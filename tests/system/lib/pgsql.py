"""The statements of sql/postgres, run by psql against a server of its own."""
import os
import re
import subprocess
import time

import base
from lib import postgres

SQL = os.path.join(base.TOP, 'sql')
FILES = ('session.sql', 'store.sql', 'queries.sql')
SCHEMA = ('schema.sql', 'checks.sql')
TOKEN = '0123456789abcdef' * 2
OWNER = 7


def statements(name):
    """[(name, text, reason to scan)] as queries.awk makes them."""
    tables = subprocess.run(
        ['awk', '-f', os.path.join(SQL, 'queries.awk')] +
        [os.path.join(SQL, 'rows.sql')] +
        [os.path.join(SQL, 'postgres', file) for file in FILES] +
        [os.path.join(SQL, 'common.sql')] +
        [os.path.join(SQL, 'postgres', file) for file in SCHEMA],
        check=True, capture_output=True, text=True).stdout
    # A list of one file stands in those after it.
    table = tables.split('#define %s(X)' % name[:-4].upper())[1]
    table = table.split('#define ')[0]
    literal = r'"(?:[^"\\]|\\.)*"'
    return [(name.lower(), unquoted(text), reason != 'NULL')
            for name, text, reason in re.findall(
                r'X\((\w+), (%s), (NULL|%s)\)' % (literal, literal), table)]


def unquoted(text):
    return re.sub(r'\\(.)', r'\1', text[1:-1])


def literal(value):
    if value is None:
        return 'NULL'
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, bytes):
        return "decode('%s', 'hex')" % value.hex()
    if isinstance(value, int):
        return str(value)
    return "'%s'" % value.replace("'", "''")


class Server(postgres.Server):
    """A server with the roles once, which owns the schema, and app."""

    def __init__(self, t):
        # Plans are those of the statistics that a test has made.
        super().__init__(t.path('pg'), settings='autovacuum = off\n')
        self.t = t
        t.defer(self.stop)
        boss = self.session('postgres', 'postgres')
        for sql in ('CREATE ROLE once LOGIN', 'CREATE ROLE app LOGIN',
                    'CREATE DATABASE once OWNER once'):
            boss.do(sql)

    def session(self, role='once', database='once', **kw):
        return Session(self, role, database, **kw)


class Session:
    """A psql that stays."""

    END = '-- end --'

    def __init__(self, server, role, database, prepare=None):
        self.prepared = prepare or {}
        self.known = set()
        self.process = server.t.popen(
            [postgres.program('psql'), '-XAtq', '-h', server.folder, '-U', role,
             database], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        server.t.defer(self.close)
        self.pid = self.value('SELECT pg_backend_pid()')

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(base.WAIT)

    def send(self, sql):
        self.process.stdin.write(
            ('%s\n;\n\\echo %s\n' % (sql, self.END)).encode())
        self.process.stdin.flush()

    def answer(self):
        """The lines of what was sent, errors among them."""
        lines = []
        while True:
            line = self.process.stdout.readline().decode()
            assert line, 'psql has ended: %s' % lines
            if line == self.END + '\n':
                return lines
            lines.append(line.rstrip('\n'))

    def lines(self, sql):
        self.send(sql)
        return self.answer()

    def do(self, sql):
        """The rows, with | between columns; an error is one of the test."""
        lines = self.lines(sql)
        assert not any('ERROR:' in line or 'FATAL:' in line
                       for line in lines), '%s: %s' % (sql, lines)
        return lines

    def error(self, sql):
        """The message; None: there is none."""
        for line in self.lines(sql):
            if line.startswith('ERROR:  '):
                return line[8:]
        return None

    def value(self, sql):
        line, = self.do(sql)
        return line

    def text(self, name, *values):
        if name not in self.known:
            self.do('PREPARE q_%s AS %s' % (name, self.prepared[name]))
            self.known.add(name)
        return 'EXECUTE q_%s%s' % (name, '(%s)' % ', '.join(
            literal(v) for v in values) if values else '')

    def run(self, name, *values):
        """A statement of queries.sql; its rows as lists of texts."""
        return [line.split('|') for line in self.do(self.text(name, *values))]

    def waits(self, watcher):
        """Until this session waits for a lock, as a superuser sees it."""
        base.wait_until(lambda: watcher.value(
            'SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND '
            "wait_event_type = 'Lock'" % self.pid) == '1',
            'it waits for a lock')


def store(t):
    """A server with the schema, and a session of its owner."""
    server = Server(t)
    queries = {name: text for file in FILES
               for name, text, _ in statements(file)}
    once = server.session(prepare=queries)
    once.do('BEGIN')
    for _, text, _ in statements('schema.sql') + statements('checks.sql'):
        once.do(text)
    once.do('COMMIT')
    server.queries = queries
    once.run('meta_new', 1, b's' * 32)
    for topic in (b'mail', b'sms'):
        once.do(once.text('topic_add', topic))
    return server, once


def digest(key):
    return key.encode().ljust(16, b'.')[:16]


IDENTITY = (b'/payments', b'alice')


def admit(once, key, caller=11, max_open=0):
    """Runs admit; its row, with names."""
    row, = once.run('admit', digest(key), key.encode(), *IDENTITY, caller,
                    max_open)
    return dict(zip(('id', 'next', 'recent', 'open'), row))


def values(id, state, caller=11, token=TOKEN, lease=60000, queued=False):
    """Those of $record_values, by the clock of this process."""
    now = int(time.time() * 1000)
    leased = state == 'in_progress'
    return [None, state, int(leased), token if leased else None,
            OWNER if leased else None, now + lease if leased else None, False,
            86400000, now, None if leased else now + 86400000, 0, None, None,
            0, None, 0, '%032x' % id if queued else None, queued,
            now if queued else None, False, 0, 0, None, b'f' * 16, caller,
            b'192.0.2.7', None, 'POST', None]


def record(id, key, state='in_progress', *args, **kw):
    """The parameters of record_new."""
    return (id, key.encode(), *IDENTITY, 1, digest(key),
            '11111111-1111-4111-8111-111111111111',
            *values(id, state, *args, **kw))


def ended(id, token=TOKEN, retention=86400000):
    """The parameters of record_write_answer: an attempt is completed."""
    changed = values(id, 'completed')
    changed[2] = 1    # attempt
    changed[9] += retention - 86400000
    changed[19:22] = True, 200, 2    # replayable, status, body_length
    return (id, 'in_progress', 1, token, -1, 0, 2, None, b'', b'ab', *changed)


def reserve(once, key='k', id=None, request=None, **kw):
    """Inserts a key with a lease."""
    id = id or int(admit(once, key)['next'])
    once.run('record_new', *record(id, key, **kw))
    if request is not None:
        once.run('request_new', id, *request, len(request[1]), 0)
    return {'id': str(id)}


def lose(once, id):
    """Its attempt is lost."""
    once.do("UPDATE once_key SET state = 'unknown', token = NULL, "
            'owner = NULL, locked_until = NULL WHERE id = %d' % id)


def grant(once, role='app'):
    """As "oncectl init --grant"."""
    for row in once.run('grant', role):
        once.do(row[0])


def clear(once):
    for table in ('key', 'request', 'piece', 'refused', 'effect'):
        once.do('DELETE FROM once_' + table)
    once.do('UPDATE once_kept SET bytes = 0')
