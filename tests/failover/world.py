"""Servers, daemons and clients, and what must hold of them.

  I1  No run without a durable reservation.
  I2  What a client saw as a final answer is what every retry gets.
  I3  One key, one run, unless the record says that it was released.
"""
import os
import signal

import base
import fcgi
import proc
from answer import eq, problem
from base import wait_until
from lib.postgres import Servers

HANDLER = r'''
ledger started $ONCE_KEY
%s
printf 'Status: 201\r\n\r\n%%s %%s' "$ONCE_KEY" "$ONCE_TOKEN"
'''
OPTIONS = {'durability': 'normal', 'busy_timeout': '1s',
           'owner_timeout': '30s', 'sweep_interval': '200ms',
           'admin_path': '/once', 'workers': '8'}
# What says that nothing is known yet; a client asks again.
AGAIN = ('key-in-progress', 'store-unavailable', 'outcome-not-recorded')


def servers(t):
    group = Servers()
    t.defer(group.close)
    return group


class World:
    def __init__(self, t, body='', group=None, name='primary', **options):
        self.t = t
        self.group = group or servers(t)
        self.options = {**OPTIONS, **options}
        self.handler = t.sh(HANDLER % body)
        self.seen = []      # (key, answer)
        self.primary = self.group.make(name)
        self.standby = self.proxy = None

    def with_standby(self, synchronous=True):
        self.standby = self.group.make('standby', 'primary')
        if synchronous:
            self.primary.synchronous('standby')
            wait_until(lambda: self.primary.sql(
                "SELECT count(*) FROM pg_stat_replication WHERE sync_state = "
                "'sync'") == '1', 'the standby is synchronous')
        return self

    def with_proxy(self):
        self.proxy = self.group.proxy('proxy', 'primary')
        return self

    def either(self):
        """The URI of both servers."""
        return 'postgresql:///postgres?host=%s,%s&user=postgres' \
            '&target_session_attrs=read-write' % (
                self.primary.folder, self.standby.folder)

    def uri(self):
        return (self.proxy or self.primary).uri()

    def host(self, name, fault=None, **kw):
        """A daemon on a host of its own: by its machine's id and the file of
        its processes, which is in another folder."""
        folder = self.t.path('state-' + name)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        env = dict(os.environ, STATE_DIRECTORY=folder)
        if fault:
            env['ONCEWRAP_FAULT'] = fault
        kw.setdefault('database', self.uri())
        defaults = kw.pop('defaults', {})
        return self.t.once(self.handler, name=name, env=env,
                           server={**self.options, **kw.pop('server', {})},
                           defaults=defaults, **kw)

    # --- clients ---

    def post(self, once, key):
        """A request, and its answer; None: there was none."""
        try:
            answer = once.post(key)
        except (OSError, fcgi.Closed):
            return None
        self.seen.append((key, answer))
        return answer

    def final(self, once, key):
        """What a client gets in the end that retries as it is told to."""
        def ask():
            answer = self.post(once, key)
            if answer is None or answer.code in AGAIN:
                return None
            return answer
        return wait_until(ask, 'key %s has an answer' % key, 40)

    def found(self, once, key):
        """The first answer that does not say that the store is away."""
        def ask():
            answer = self.post(once, key)
            return None if answer is None or \
                answer.code == 'store-unavailable' else answer
        return wait_until(ask, 'the store is there')

    def refused(self, once, key):
        """The store is not there, and nothing runs."""
        before = self.runs(key)
        answer = self.post(once, key)
        assert answer is not None
        # Another key is safe where it is known that there is no record.
        problem(answer, 'store-unavailable',
                acted=not answer.json()['safe_new_key'])
        assert answer.get('Retry-After'), str(answer)
        eq(self.runs(key), before)

    # --- what must hold ---

    def runs(self, key):
        return len([line for line in self.t.ledger()
                    if line.split()[1:] == ['started', key]])

    def check(self, *daemons, runs=1, states=('completed',)):
        """Of every key that a client has asked for."""
        finals = {}
        for key in sorted({key for key, _ in self.seen}):
            self.final(daemons[0], key)     # which may run it
            answers = [self.final(once, key) for once in daemons]
            finals[key] = answers[0]
            for other in answers[1:]:
                eq((other.status, other.code),
                   (answers[0].status, answers[0].code))
                if other.status == 201:
                    eq(other.body, answers[0].body)
        for key, answer in self.seen:
            if answer.status == 201:
                eq((finals[key].status, finals[key].body),
                   (201, answer.body), 'I2: ' + key)
        rows = {row['key']: row for row in daemons[0].ls()}
        for key, answer in finals.items():
            row = rows[key]
            assert row['state'] in states, row
            n = self.runs(key)
            assert n <= runs and n <= row['attempt'], 'I1, I3: %d runs: %r' % (
                n, row)
            if row['state'] == 'completed':
                assert n > 0, row
                eq((answer.status, answer.replayed), (201, 'true'), answer)
            else:
                eq(answer.code, 'outcome-unknown')
        for once in daemons:
            wait_until(lambda: once.get('/once/health').status == 200,
                       '%s is healthy' % once.name)


def is_stopped(once):
    wait_until(lambda: proc.state(once.pid) == 'T',
               '%s is stopped at its fault point' % once.name)


def go_on(once):
    proc.kill(once.pid, signal.SIGCONT)
    wait_until(lambda: proc.state(once.pid) != 'T', 'it goes on')
