"""A PostgreSQL server that lets nobody in: by the user's name or password, or
because others have all its connections."""
import os
import subprocess

import base
from answer import eq, first, problem, replay
from base import wait_until
from lib.postgres import account, program
from once import Background
from test_postgres_ops import ctl, environment, has, servers

HELLO = 'printf "Content-Type: text/plain\\n\\nhello $ONCE_KEY"'
# Nothing may wait so long; a case that does fails.
FOREVER = '1h'


def shop(t):
    """A server, and the URI of a database of the role `secret`."""
    server = servers(t).make('a')
    server.sql('CREATE DATABASE shop OWNER secret')
    return server, 'postgresql://secret@/shop?host=' + server.folder


def password(t, word):
    """The environment of a process that reads it from a file."""
    t.write('passwords', '*:*:*:secret:%s\n' % word.replace(':', '\\:'))
    os.chmod(t.path('passwords'), 0o600)
    return dict(environment(t), PGPASSFILE=t.path('passwords'),
                ONCEWRAP_MODULES=base.MODULES)


def conf(t, uri):
    t.write('c.conf', '[server]\ndatabase = %s\ndurability = normal\n'
            'socket = unix:%s\nbusy_timeout = %s\n'
            % (uri, t.path('c.sock'), FOREVER))
    return ['-f', t.path('c.conf')]


def said_once(t, argv, env, says):
    """It fails at once, and tells why once."""
    run = t.run(argv, env=env)
    eq((run.returncode, run.stdout), (1, b''), run)
    lines = [line for line in run.stderr.decode().splitlines()
             if 'event=stopped' not in line]
    eq(len(lines), 1, run)
    has(lines[0].replace('\\"', '"'), says)


def test_who_is_refused_is_told_so_at_once_and_once(t):
    server, uri = shop(t)
    right = password(t, 's3kr:t/pw')
    nowhere = uri.replace('/shop?', '/nowhere?')
    for env, where, says in (
            (environment(t), uri, 'no password supplied (write it into'),
            (dict(right, PGPASSFILE='', PGPASSWORD='wrong'), uri,
             'password authentication failed for user "secret"'),
            (right, nowhere, 'database "nowhere" does not exist')):
        for program_ in ([base.ONCECTL, *conf(t, where), 'ls'],
                         [base.ONCECTL, *conf(t, where), 'init'],
                         [base.ONCEWRAP, *conf(t, where)]):
            said_once(t, program_, env, says)
    init = [base.ONCECTL, *conf(t, uri), 'init']
    said_once(t, init + ['--grant', 'nobody'], right,
              'role "nobody" does not exist')
    server.sql('ALTER DATABASE shop OWNER TO postgres')
    said_once(t, [base.ONCECTL, *conf(t, server.uri(user='secret')), 'init'],
              right, 'permission denied for schema public')


def test_a_daemon_that_is_refused_later_answers_at_once_and_goes_on(t):
    server, uri = shop(t)
    once = t.once(t.sh(HELLO), server={'durability': 'normal',
                                       'busy_timeout': FOREVER},
                  database=uri, env=password(t, 's3kr:t/pw'))
    answer = once.post('k1')
    first(answer)
    server.sql("ALTER ROLE secret PASSWORD 'new'")
    server.sql("SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
               "WHERE usename = 'secret'")
    once.wait_log('password authentication failed')
    problem(once.post('k2'), 'store-unavailable', acted=True)
    eq(len(once.log_lines('doing=connect .*password')), 1)
    # The file is read at each try.
    password(t, 'new')
    wait_until(lambda: once.post('k3').status == 200, 'it goes on')
    replay(once.post('k1'), answer)
    eq(len(once.log_lines('event=store-connected')), 1)


class Crowd:
    """Sessions that take all connections of a server."""

    def __init__(self, t, server, user):
        self.sessions = []
        t.defer(self.leave)
        while self.enter(server.uri(user=user)):
            pass

    def enter(self, uri):
        process = subprocess.Popen(
            [program('psql'), '-XAtq', '-d', uri], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, **account())
        self.sessions.append(process)
        process.stdin.write('SELECT 1;\n')
        try:
            process.stdin.flush()
        except BrokenPipeError:
            return False
        return process.stdout.readline() == '1\n'

    def leave(self):
        while self.sessions:
            process = self.sessions.pop()
            process.kill()
            process.stdin = None        # what was not written is of no use
            process.communicate()


def test_a_daemon_goes_on_when_others_leave_connections_again(t):
    server, uri = shop(t)
    server.sql('ALTER SYSTEM SET max_connections = 12')
    server.sql('CREATE ROLE crowd LOGIN')
    server.restart()
    gate = t.gate()
    os.environ['PGPASSFILE'] = t.path('passwords')      # for oncectl
    once = t.once(t.sh(HELLO), server={'durability': 'normal',
                                       'admin_path': '/admin',
                                       'busy_timeout': '500ms'},
                  routes={'/slow': {'handler': t.sh('gate gate; status 201')}},
                  database=uri, env=password(t, 's3kr:t/pw'))
    answer = once.post('k1')
    first(answer)
    run = Background(lambda: once.post('slow', path='/slow'))
    gate.wait()
    # It may not come back before the others have all connections.
    server.sql('ALTER ROLE secret CONNECTION LIMIT 0')
    server.sql("SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
               "WHERE usename = 'secret'")
    crowd = Crowd(t, server, 'crowd')
    assert len(crowd.sessions) > 5, crowd.sessions
    server.sql('ALTER ROLE secret CONNECTION LIMIT -1')
    for _ in range(3):
        problem(once.post('k2'), 'store-unavailable', acted=True)
    eq(once.get('/admin/health').status, 503)
    # What ran at that time is not told, and not lost.
    gate.open()
    problem(run.result(), 'outcome-not-recorded')
    eq(len(once.log_lines('doing=connect')), 1)
    has(once.log(), 'remaining connection slots are reserved')
    crowd.leave()
    wait_until(lambda: once.post('k3').status == 200, 'it goes on')
    once.wait_state('slow', 'completed')
    eq(once.post('slow', path='/slow').replayed, 'true')
    replay(once.post('k1'), answer)
    first(once.post('k2'))
    eq(once.get('/admin/health').status, 200)
