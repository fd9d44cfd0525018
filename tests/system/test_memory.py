"""What bodies take: memory, and room for all of them together."""
import os
import threading

import base
from answer import eq, first, problem, replay
from base import wait_until
from fcgi import (PARAMS, STDIN, begin, pairs, record, request_params,
                  stream)
from once import Background

MIB = 1024 * 1024
# MALLOC_PERTURB_ would touch what is allocated and not used.
PLAIN = {k: v for k, v in os.environ.items() if k != 'MALLOC_PERTURB_'}


class Peak:
    """The most private memory that a process has while this is open."""

    def __init__(self, pid):
        self.pid, self.most, self.over = pid, 0, threading.Event()
        self.first = self.look()
        self.thread = threading.Thread(target=self.watch)

    def look(self):
        with open('/proc/%d/status' % self.pid) as f:
            for line in f:
                if line.startswith('RssAnon:'):
                    return int(line.split()[1]) * 1024

    def watch(self):
        while not self.over.wait(0.002):
            self.most = max(self.most, self.look())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def grown(self):
        return self.most - self.first


def below(peak, limit):
    if 'san' in os.path.basename(base.BUILDDIR):
        return      # what a sanitizer needs is not ours
    assert peak.grown() < limit, '%.1f MiB, not below %.1f' % (
        peak.grown() / MIB, limit / MIB)


def test_comparisons_of_json_share_64_megabytes(t):
    once = t.once(handler=t.sh('status 201; echo done'), env=PLAIN,
                  server={'busy_timeout': '10m'})
    body = b'{' + b'"":0,' * (3 * MIB) + b'"":0}'
    with Peak(once.pid) as peak:
        posts = [Background(lambda n=n: once.post(
            'k%d' % n, body, type='application/json'))
            for n in range(4)]
        for post in posts:
            first(post.result(), 201)
    below(peak, 72 * MIB)


def test_request_above_spool_total_runs_nothing(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 201; echo done'),
                  server={'spool_total': '1M', 'admin_path': '/admin'})
    conn = once.begin('k', b'x' * 900000)
    gate.wait()
    problem(once.post('l', b'x' * 200000), 'overloaded', acted=True)
    eq(once.get('/admin/health').status, 200)
    eq((len(t.ledger()), once.row('l')), (1, None))
    gate.open(2)
    first(conn.answer(), 201)
    wait_until(lambda: once.post('l', b'x' * 200000).status == 201,
               'there is room again')
    eq(len(t.ledger()), 2)


def test_bodies_of_one_client_do_not_keep_others_out(t):
    """They take half of spool_total, but one alone may take all."""
    gate = t.gate()
    once = t.once(handler=t.sh('[ "$QUERY_STRING" = hold ] && gate gate\n'
                               'status 201; echo done'),
                  server={'spool_total': '1M', 'admin_path': '/admin'})
    mine, other = '192.0.2.7', '192.0.2.8'

    def begin(key, size, path='/pay'):
        conn = once.begin(key, b'x' * size, query='hold', path=path,
                          address=mine)
        gate.wait()
        return conn
    held = [begin('a', 250000), begin('b', 250000, '/other')]
    for size in (100000, 900000):
        answer = once.post('c', b'x' * size, address=mine)
        problem(answer, 'overloaded', acted=True)
        assert b'of this client' in answer.body, answer
    eq(once.get('/admin/health').body.decode(),
       'ok\noverloaded spool_total route=- caller=192.0.2.7\n')
    first(once.post('c', b'x' * 10000, address=mine), 201)
    first(once.post('d', b'x' * 500000, address=other), 201)
    first(once.post('e', b'x' * 500000, address=''), 201)
    gate.open(2)
    for conn in held:
        first(conn.answer(), 201)
    wait_until(lambda: once.post('f', b'x' * 900000,
                                 address=mine).status == 201,
               'there is room again')


def test_output_above_spool_total_is_kept_and_new_requests_wait(t):
    gate = t.gate()
    once = t.once(handler=t.sh('status 201; head -c 2000000 /dev/zero; '
                               'gate gate'), server={'spool_total': '1M'})
    conn = once.begin('k')
    gate.wait()
    wait_until(lambda: once.post('l').code == 'overloaded',
               'a new request is refused')
    eq(once.row('l'), None)
    gate.open()
    answer = conn.answer()
    first(answer, 201)
    eq(len(answer.body), 2000000)
    wait_until(lambda: once.post('k').replayed, 'there is room again')
    replay(once.post('k'), answer)


class Trickle:
    """Keeps bodies arriving, a byte at a time, while this is open."""

    def __init__(self, conns):
        self.conns, self.over = conns, threading.Event()
        self.thread = threading.Thread(target=self.send)

    def send(self):
        while not self.over.wait(0.1):
            for conn in self.conns:
                conn.try_send(record(STDIN, 1, b'x'))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_bodies_that_never_end_do_not_keep_others_out(t):
    once = t.once(handler=t.sh('ledger; status 201; echo done'),
                  server={'spool_total': '1M', 'io_timeout': '4s'})
    conns = []
    for n in range(8):
        conns.append(once.connect())
        conns[-1].send(begin() + stream(PARAMS, 1, pairs(request_params(
            'POST', '/pay', key='slow%d' % n, length=False,
            address='192.0.2.%d' % n))),
            stream(STDIN, 1, b'x' * 130000, end=False))
    with Trickle(conns):
        wait_until(lambda: once.post('k', b'x' * 200000).status == 201,
                   'a request with a body is answered')
    eq(len(t.ledger()), 1)
    # What the oldest had sent is gone; they may send it again.
    gone = 0
    for n, conn in enumerate(conns):
        conn.send(record(STDIN, 1))
        answer = conn.answer()
        if answer.status == 201:
            first(answer, 201)
            continue
        problem(answer, 'overloaded', acted=True)
        eq(once.row('slow%d' % n), None)
        gone += 1
    assert 0 < gone < len(conns), gone
    eq(len(t.ledger()), 1 + len(conns) - gone)


# SQLite's page cache is 4 MiB of it.  Mapped spools are not private memory.
# libpq holds a piece of a body for each connection.
ABOVE_IDLE = 10 * MIB
SEVERAL = 14 * MIB if base.POSTGRES else ABOVE_IDLE


def echo(t, **kw):
    # Bodies of 15 MB are many commits: a slow disk is not what is measured.
    kw['server'] = dict(kw.get('server', {}), durability='normal')
    once = t.once(handler=t.sh('status 201; exec cat'), env=PLAIN, **kw)
    first(once.post('small', b'x'), 201)
    return once


def test_large_body_does_not_go_through_memory(t):
    once = echo(t)
    body = os.urandom(15 * MIB)
    with Peak(once.pid) as peak:
        answer = once.post('k', body)
        first(answer, 201)
        replay(once.post('k', body), answer)
    below(peak, ABOVE_IDLE)


def test_several_large_bodies_do_not_go_through_memory(t):
    once = echo(t)
    body = os.urandom(15 * MIB)

    def post_all():
        posts = [Background(lambda n=n: once.post('k%d' % n, body))
                 for n in range(4)]
        return [post.result() for post in posts]
    with Peak(once.pid) as peak:
        for answer in post_all():
            first(answer, 201)
            eq(answer.body, body)
        for answer in post_all():
            eq((answer.replayed, answer.body), ('true', body))
    below(peak, SEVERAL)


def test_request_that_is_kept_does_not_go_through_memory(t):
    once = echo(t, server={'status_path': '/status'},
                routes={'/later': {'async': 'always'}})
    body = os.urandom(15 * MIB)
    with Peak(once.pid) as peak:
        eq(once.post('k', body, '/later').status, 202)
        wait_until(lambda: once.state('k') == 'completed', 'it has run')
        eq(once.post('k', body, '/later').body, body)
    below(peak, ABOVE_IDLE)
