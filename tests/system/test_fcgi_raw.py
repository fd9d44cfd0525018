"""FastCGI as no web server speaks it: the process survives everything."""
import os
import random
import resource
import struct
import time

import base
import fcgi
from answer import eq, first, problem, replay
from base import wait_until
from fcgi import (ABORT, BEGIN, DATA, END, GET_VALUES, GET_VALUES_RESULT,
                  PARAMS, STDERR, STDIN, STDOUT, UNKNOWN, begin, pair, pairs,
                  record, request_params, stream)
from once import HASTY, Lock

OK = 'ledger; status 201; echo done'


def once_with(t, body=OK, server=None, **defaults):
    return t.once(handler=t.sh(body), server=server, defaults=defaults)


def head(key='k', body=b'', id=1, keep=False, method='POST', **kw):
    """A request up to the end of its parameters."""
    return begin(id, keep=keep) + stream(PARAMS, id, pairs(request_params(
        method, '/pay', body, key=key, **kw)))


def still_serves(t, once):
    """After all that: it lives, answers, and runs nothing by itself."""
    assert once.alive(), 'oncewrap is gone'
    before = len(t.ledger())
    n = t.counter = t.counter + 1
    first(once.post('serves%d' % n), 201)
    eq(len(t.ledger()), before + 1)


# --- bodies ---

def test_body_cut_off_by_a_close_runs_nothing(t):
    once = once_with(t)
    for sent in (b'', b'abc', b'x' * 200000):
        conn = once.connect()
        conn.send(head(length=300000), stream(STDIN, 1, sent, end=False))
        conn.close()
    conn = once.connect()
    conn.send(head(length=10) + record(STDIN, 1, b'abc', length=10)[:-2])
    conn.close()
    still_serves(t, once)
    eq(once.row('k'), None)
    eq(len(t.ledger()), 1)


def test_nothing_is_answered_before_the_end_of_the_body(t):
    """haproxy and uwsgi send the empty STDIN record by itself."""
    once = once_with(t)
    rows = (('no key', head(key=None, method='GET'), 201),
            ('a key', head(key='k'), 201),
            ('a body', head(key='l', body=b'abc') +
             stream(STDIN, 1, b'abc', end=False), 201),
            ('refused', head(key='"bad'), 400))
    conns = []
    for _, data, _ in rows:
        conns.append(once.connect())
        conns[-1].send(data)
    still_serves(t, once)
    for i, ((what, _, status), conn) in enumerate(zip(rows, conns)):
        assert conn.silent(), what
        eq(len(t.ledger()), 1 + i, what)
        conn.send(stream(STDIN, 1, b''))
        eq(conn.answer().status, status, what)


def test_body_cut_off_by_a_half_close(t):
    once = once_with(t)
    conn = once.connect()
    conn.send(head(length=10), stream(STDIN, 1, b'abc', end=False))
    conn.end_sending()
    # A peer that has closed half looks like one that is gone.
    assert conn.is_closed()
    eq(once.row('k'), None)
    still_serves(t, once)


def test_body_shorter_than_content_length(t):
    once = once_with(t)
    problem(once.post('k', b'abc', length=4), 'body-incomplete')
    problem(once.post('k', b'', length=1), 'body-incomplete')
    eq((once.row('k'), t.ledger()), (None, []))


def test_body_longer_than_content_length(t):
    once = once_with(t)
    problem(once.post('k', b'abcd', length=3), 'body-incomplete')
    problem(once.post('k', b'a', length=0), 'body-incomplete')
    eq((once.row('k'), t.ledger()), (None, []))


def test_content_length_that_is_no_number(t):
    once = once_with(t)
    for value in ('x', '-1', '+3', '3x', ' 3', '0x3', '3,3', '3.0',
                  '99999999999999999999'):
        problem(once.post('k', b'abc', length=value), 'body-incomplete')
    eq((once.row('k'), t.ledger()), (None, []))


def test_cut_retry_of_what_was_done_makes_no_new_key_safe(t):
    once = once_with(t)
    done = once.post('k', b'abc')
    first(done, 201)
    problem(once.post('k', b'ab', length=3), 'body-incomplete', acted=True)
    replay(once.post('k', b'abc'), done)
    # Of one that was never used the store says so.
    problem(once.post('new', b'ab', length=3), 'body-incomplete')


def test_cut_body_of_a_request_that_is_not_guarded(t):
    once = once_with(t)
    answer = once.post(None, b'abc', length=4)
    eq(answer.status, 400, answer)
    eq(t.ledger(), [])


def test_announced_body_above_the_limit_is_refused_and_drained(t):
    once = once_with(t, max_request_body='1K')
    body = b'x' * 3_000_000
    problem(once.post('k', body), 'body-too-large')
    problem(once.post('k', body, length=False), 'body-too-large')
    eq((once.row('k'), t.ledger()), (None, []))


def test_body_in_one_byte_records(t):
    once = once_with(t, 'status 201; cat')
    body = bytes(range(256)) * 10
    conn = once.connect()
    conn.send(head(body=body) + stream(STDIN, 1, body, piece=1))
    eq(conn.answer().body, body)


def test_request_in_one_byte_writes(t):
    once = once_with(t, 'status 201; cat')
    conn = once.connect()
    data = head(body=b'body') + stream(STDIN, 1, b'body')
    for i in range(len(data)):
        conn.send(data[i:i + 1])
    answer = conn.answer()
    first(answer, 201, b'body')


def test_parameters_in_one_byte_records(t):
    once = once_with(t)
    params = pairs(request_params('POST', '/pay', key='k'))
    conn = once.connect()
    conn.send(begin() + stream(PARAMS, 1, params, piece=1) +
              record(STDIN, 1))
    first(conn.answer(), 201)
    eq(once.state('k'), 'completed')


def test_padding_is_skipped(t):
    once = once_with(t, 'status 201; cat')
    params = pairs(request_params('POST', '/pay', b'abcd', key='k'))
    conn = once.connect()
    conn.send(record(BEGIN, 1, struct.pack('>HB5x', 1, 0), 255),
              record(PARAMS, 1, params[:50], 255),
              record(PARAMS, 1, params[50:], 1), record(PARAMS, 1, b'', 7),
              record(STDIN, 1, b'ab', 3), record(STDIN, 1, b'cd', 200),
              record(STDIN, 1, b'', 8))
    first(conn.answer(), 201, b'abcd')


def test_request_ids_are_answered_with_their_own(t):
    once = once_with(t)
    for id in (1, 2, 255, 256, 65535):
        params = request_params('POST', '/pay', key='k%d' % id)
        first(fcgi.exchange(once.address, params, id=id), 201)


# --- aborted ---

def test_abort_before_the_body_runs_nothing(t):
    once = once_with(t)
    # Before the parameters' end there is nothing to answer but the end.
    for data, status in (
            (begin() + record(ABORT, 1), None),
            (begin() + record(PARAMS, 1, pair('A', 'b')) + record(ABORT, 1),
             None),
            (head(length=10) + record(ABORT, 1), 400),
            (head(length=10) + record(STDIN, 1, b'abc') + record(ABORT, 1),
             400)):
        conn = once.connect()
        conn.send(data)
        answer = conn.answer()
        eq((answer.status, answer.protocol_status, answer.broken),
           (status, fcgi.REQUEST_COMPLETE, None), answer)
    still_serves(t, once)
    eq(once.row('k'), None)


def test_abort_on_a_kept_connection_leaves_it_usable(t):
    once = once_with(t)
    conn = once.connect()
    conn.send(head(length=10, keep=True) + record(ABORT, 1))
    problem(conn.answer(), 'body-incomplete')
    conn.send(head('k2', keep=True, id=2) + record(STDIN, 2))
    first(conn.answer(2), 201)
    still_serves(t, once)
    eq(once.row('k'), None)


def test_abort_while_the_handler_runs_changes_nothing(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 201; echo done')
    conn = once.begin('k')
    gate.wait()
    conn.send(record(ABORT, 1))
    gate.open()
    once.wait_state('k', 'completed')
    gate.open()
    answer = once.post('k')
    eq((answer.status, answer.replayed), (201, 'true'))
    eq(len(t.ledger()), 1)


# --- silent and stalled peers ---

def test_silent_peers_do_not_starve_others(t):
    once = once_with(t, server={'workers': '2'})
    silent = [once.connect() for _ in range(50)]
    for i in range(10):
        first(once.post('k%d' % i), 201)
    assert all(c.silent() for c in silent)


def test_peers_stalled_in_mid_request_do_not_starve_others(t):
    once = once_with(t, server={'workers': '2'})
    data = head(length=100) + record(STDIN, 1, b'x' * 50)
    stalled = []
    for i in range(1, 60):
        conn = once.connect()
        conn.send(data[:i * len(data) // 60])
        stalled.append(conn)
    for i in range(10):
        first(once.post('k%d' % i), 201)
    assert all(c.silent() for c in stalled)


def test_kept_idle_connections_do_not_starve_others(t):
    once = once_with(t, server={'workers': '2'})
    kept = []
    for i in range(20):
        conn = once.connect()
        conn.send(head('a%d' % i, keep=True) + record(STDIN, 1))
        first(conn.answer(), 201)
        kept.append(conn)
    for i in range(10):
        first(once.post('b%d' % i), 201)
    for i, conn in enumerate(kept):
        conn.send(head('c%d' % i, keep=True) + record(STDIN, 1))
        first(conn.answer(), 201)


def test_a_stalled_peer_is_dropped_after_io_timeout(t):
    once = once_with(t, server={'io_timeout': '300ms'})
    for data in (head()[:5], head(), head(length=5) +
                 record(STDIN, 1, b'abc')):
        conn = once.connect()
        began = time.monotonic()
        conn.send(data)
        assert conn.is_closed(base.WAIT * base.SLOW)
        took = time.monotonic() - began
        assert 0.25 < took < 5 * base.SLOW, 'dropped after %.2f s' % took
    eq(once.row('k'), None)
    still_serves(t, once)


def test_io_timeout_of_a_reload_holds_for_all_connections(t):
    """An older connection must not hide a later one; nor must the loop, which
    sleeps until the old deadline."""
    once = once_with(t, server={'io_timeout': '1h'})
    body = head(length=5) + record(STDIN, 1, b'abc')
    conns = [once.connect()]
    conns[0].send(body)
    once.server['io_timeout'] = '300ms'
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    conns.append(once.connect())
    conns[1].send(body)
    for conn in reversed(conns):
        assert conn.is_closed(base.WAIT * base.SLOW)
    still_serves(t, once)


def test_io_timeout_does_not_concern_running_handlers(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 201',
                     server={'io_timeout': '100ms'})
    conn = once.begin('k')
    gate.wait()
    # Another peer was dropped meanwhile: so the time is over.
    other = once.connect()
    other.send(head('other')[:9])
    assert other.is_closed()
    gate.open()
    first(conn.answer(), 201)


def test_a_peer_that_trickles_does_not_starve_others(t):
    once = once_with(t, server={'workers': '1'})
    conn = once.connect()
    data = head(body=b'x' * 20) + stream(STDIN, 1, b'x' * 20)
    for i in range(0, len(data), 40):
        conn.send(data[i:i + 40])
        first(once.post('k%d' % i), 201)
    first(conn.answer(), 201)


def test_more_connections_than_most_would_open(t):
    once = once_with(t, server={'workers': '2'})
    conns = [once.connect() for _ in range(500)]
    first(once.post('k'), 201)
    for conn in conns[::50]:
        conn.send(head('k') + record(STDIN, 1))
        eq(conn.answer().replayed, 'true')


# --- kept connections ---

def test_requests_on_a_kept_connection(t):
    once = once_with(t, 'ledger; status 201; cat')
    conn = once.connect()
    for i in range(10):
        body = b'body %d' % i
        conn.send(head('k%d' % i, body, id=i + 1, keep=True) +
                  stream(STDIN, i + 1, body))
        first(conn.answer(i + 1), 201, body)
    conn.send(head('last', keep=False) + record(STDIN, 1))
    first(conn.answer(), 201)
    assert conn.is_closed()


def test_connection_that_is_not_kept_is_closed(t):
    once = once_with(t)
    conn = once.begin('k')
    first(conn.answer(), 201)
    assert conn.is_closed()


def smuggled(key='smuggled'):
    """A whole request, to be hidden in a body."""
    return head(key) + record(STDIN, 1)


def kept_with_body(t, once, body, code=None, **kw):
    """A kept connection whose first request has that body: it is drained, and
    the next request on it is served."""
    conn = once.connect()
    conn.send(head(kw.pop('key', 'k'), body, keep=True, **kw) +
              stream(STDIN, 1, body))
    eq(conn.answer().code, code)
    conn.send(head('after', id=2, keep=True) + record(STDIN, 2))
    first(conn.answer(2), 201)
    eq(once.row('smuggled'), None)
    still_serves(t, once)


def test_unread_body_never_becomes_a_request(t):
    once = once_with(t)
    kept_with_body(t, once, smuggled() * 200)


def test_refused_body_never_becomes_a_request(t):
    once = once_with(t, max_request_body='100')
    kept_with_body(t, once, smuggled() * 200, 'body-too-large')


def test_body_of_a_refused_key_never_becomes_a_request(t):
    once = once_with(t)
    kept_with_body(t, once, smuggled() * 200, 'key-invalid', key='"bad')


def test_body_of_a_replay_never_becomes_a_request(t):
    once = once_with(t)
    body = smuggled() * 200
    first(once.post('k', body), 201)
    kept_with_body(t, once, body)


def test_body_of_a_mismatch_never_becomes_a_request(t):
    once = once_with(t)
    first(once.post('k', 'other'), 201)
    kept_with_body(t, once, smuggled() * 200, 'key-reused')


def test_overlong_body_never_becomes_a_request(t):
    once = once_with(t)
    kept_with_body(t, once, smuggled() * 200, 'body-incomplete', length=10)


def test_unread_body_of_pass_through_never_becomes_a_request(t):
    once = once_with(t)
    kept_with_body(t, once, smuggled() * 200, key=None)


def test_body_when_the_store_fails_never_becomes_a_request(t):
    once = once_with(t, server=HASTY)
    lock = Lock(t, once.database)
    conn = once.connect()
    body = smuggled() * 200
    conn.send(head('k', body, keep=True) + stream(STDIN, 1, body))
    problem(conn.answer(), 'store-unavailable')
    lock.release()
    eq(once.row('smuggled'), None)
    still_serves(t, once)


def test_pipelined_requests_are_answered_in_turn(t):
    once = once_with(t)
    conn = once.connect()
    conn.send(head('a', keep=True) + record(STDIN, 1) +
              head('b', keep=True) + record(STDIN, 1))
    first(conn.answer(), 201)
    first(conn.answer(), 201)
    eq(sorted(row['key'] for row in once.ls()), ['a', 'b'])
    still_serves(t, once)


def test_a_second_request_that_is_multiplexed_is_refused(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 201')
    conn = once.connect()
    conn.send(head('a', length=3, keep=True),
              head('b', id=2, keep=True), record(STDIN, 2),
              stream(STDIN, 1, b'abc'))
    kind, id, content = conn.record()
    eq((kind, id, content[4]), (END, 2, fcgi.CANT_MPX_CONN))
    gate.wait()
    gate.open()
    first(conn.answer(), 201)
    eq(once.row('b'), None)
    eq(len(t.ledger()), 1)


# --- management records, and what is none ---

def test_get_values_knows_no_name(t):
    once = once_with(t)
    conn = once.connect()
    for content in (b'', pairs([('FCGI_MAX_CONNS', ''), ('OTHER', '')]),
                    pairs([('FCGI_MAX_CONNS', '')] * 3000), b'\xff' * 8,
                    b'\x05\x00A', b'\x00\x00' * 1000):
        conn.send(record(GET_VALUES, 0, content))
        eq(conn.record(), (GET_VALUES_RESULT, 0, b''))
    conn.send(head() + record(STDIN, 1))
    first(conn.answer(), 201)


def test_unknown_management_record(t):
    once = once_with(t)
    conn = once.connect()
    conn.send(record(77, 0, b'what'))
    kind, id, content = conn.record()
    eq((kind, id, content[0]), (UNKNOWN, 0, 77))
    conn.send(head() + record(STDIN, 1))
    first(conn.answer(), 201)


def test_unknown_role_is_refused(t):
    once = once_with(t)
    for role in (0, fcgi.AUTHORIZER, fcgi.FILTER, 99):
        conn = once.connect()
        conn.send(begin(role=role, keep=True))
        kind, id, content = conn.record()
        eq((kind, id, content[4]), (END, 1, fcgi.UNKNOWN_ROLE))
    still_serves(t, once)


def broken_streams():
    good = head() + record(STDIN, 1)
    params = pairs(request_params('POST', '/pay', key='k'))
    yield 'nothing', b''
    yield 'text', b'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
    yield 'version 2', record(BEGIN, 1, bytes(8), version=2)
    yield 'zeros', bytes(100000)
    yield 'ones', b'\xff' * 100000
    yield 'begin with id 0', begin(0) + good
    yield 'begin too short', record(BEGIN, 1, b'\0\1') + good
    yield 'begin too long', record(BEGIN, 1, b'\0\1' + bytes(100)) + good
    yield 'begin twice', begin() + begin() + good
    yield 'params before begin', stream(PARAMS, 1, params)
    yield 'stdin before begin', record(STDIN, 1, b'abc')
    yield 'stdin before params', begin() + record(STDIN, 1, b'abc') + good
    yield 'params after their end', head() + stream(PARAMS, 1, params) + \
        record(STDIN, 1)
    yield 'params of no request', begin() + stream(PARAMS, 7, params)
    yield 'data record', head() + record(DATA, 1, b'abc') + record(STDIN, 1)
    yield 'records of the responder', begin() + record(STDOUT, 1, b'abc') + \
        record(STDERR, 1, b'abc') + record(END, 1, bytes(8))
    yield 'no params at all', begin() + record(PARAMS, 1) + record(STDIN, 1)
    yield 'abort of no request', record(ABORT, 1) * 100
    yield 'end without begin', record(END, 1, bytes(8))
    for name, content in (
            ('name longer than there is', b'\x10\x00AB'),
            ('value longer than there is', b'\x01\x10AB'),
            ('huge name', b'\xff\xff\xff\xff\x00A'),
            ('huge value', b'\x01\xff\xff\xff\xffA'),
            ('both huge', b'\xff\xff\xff\xff\xff\xff\xff\xff'),
            ('sum that wraps', b'\xff\xff\xff\xff\x81\x00\x00\x01A'),
            ('one length byte', b'\x01'),
            ('cut four byte length', b'\x01\x80\x00'),
            ('nameless', b'\x00\x01A'), ('empty pairs', bytes(2000)),
            ('nul in value', pair('REQUEST_METHOD', b'PO\0ST')),
            ('nul in name', pair(b'A\0B', b'x'))):
        yield name, begin() + stream(PARAMS, 1, content) + record(STDIN, 1)
    yield 'too many params', begin() + stream(
        PARAMS, 1, b''.join(pair('N%d' % i, 'v') for i in range(100000))) + \
        record(STDIN, 1)
    yield 'too much of params', begin() + stream(
        PARAMS, 1, pair('BIG', 'x' * 5_000_000)) + record(STDIN, 1)


def test_malformed_input_ends_neither_the_process_nor_runs_anything(t):
    once = once_with(t, key='required')
    for name, data in broken_streams():
        conn = once.connect()
        conn.try_send(data)
        try:
            conn.end_sending()
        except OSError:
            pass
        conn.sock.settimeout(base.WAIT * base.SLOW)
        try:
            while conn.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass
        except OSError as error:
            raise AssertionError('%s: connection stays open: %s' %
                                 (name, error))
        conn.close()
        assert once.alive(), 'ended by: %s' % name
    # Some have a whole request before what is wrong; all have one key.
    wait_until(lambda: not once.handlers(), 'handlers end')
    eq(t.ledger(), ['1 '])
    still_serves(t, once)


def test_nul_in_a_parameter_is_refused(t):
    once = once_with(t)
    for params in ({'QUERY_STRING': b'a\0b'}, {b'A\0B': 'c'},
                   {'HTTP_IDEMPOTENCY_KEY': b'k\0x'}):
        answer = once.post(params=params)
        eq(answer.status, 400, answer)
    eq(t.ledger(), [])


def test_parameters_of_half_the_limit(t):
    once = once_with(t, 'ledger; status 201; echo "${#HTTP_BIG}"')
    answer = once.post('k', headers={'Big': 'x' * 100_000})
    first(answer, 201, b'100000\n')


def test_random_garbage(t):
    once = once_with(t, key='required')
    rnd = random.Random(20240501)
    for _ in range(150):
        conn = once.connect()
        conn.try_send(rnd.randbytes(rnd.randrange(1, 3000)))
        conn.close()
    still_serves(t, once)


def test_damaged_requests(t):
    once = once_with(t, 'ledger; status 201')
    rnd = random.Random(20240502)
    good = head(body=b'some body') + stream(STDIN, 1, b'some body')
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rnd.randrange(1, 4)):
            data[rnd.randrange(len(data))] = rnd.randrange(256)
        conn = once.connect()
        conn.try_send(bytes(data))
        conn.close()
    wait_until(lambda: not once.handlers(), 'handlers end')
    assert once.alive()
    first(once.post('serves'), 201)


def test_random_interleavings_of_records(t):
    once = once_with(t, key='required')
    rnd = random.Random(20240503)
    pieces = [begin(1), begin(2, keep=True), begin(1, keep=True),
              record(PARAMS, 1, pairs(request_params('POST', '/pay'))),
              record(PARAMS, 1), record(PARAMS, 2), record(STDIN, 1, b'abc'),
              record(STDIN, 1), record(STDIN, 2), record(ABORT, 1),
              record(ABORT, 2), record(GET_VALUES, 0, pair('FCGI_MAX_REQS',
                                                           '')),
              record(55, 0), record(55, 1), record(DATA, 1, b'x'),
              record(END, 1, bytes(8))]
    for _ in range(200):
        conn = once.connect()
        conn.try_send(b''.join(rnd.choices(pieces, k=rnd.randrange(1, 20))))
        conn.close()
    eq(t.ledger(), [])
    still_serves(t, once)


def test_memory_is_bounded_under_endless_parameters(t):
    once = once_with(t)
    conn = once.connect()
    conn.send(begin())
    piece = record(PARAMS, 1, b'\x01\x84\x00\x00\x00A' + b'x' * 60000)
    sent = 0
    while sent < 64 << 20 and conn.try_send(piece):
        sent += len(piece)
    assert sent < 64 << 20, 'parameters without an end are taken'
    still_serves(t, once)


def test_survives_a_shortage_of_descriptors(t):
    once = once_with(t, server={'workers': '2'})
    resource.prlimit(once.pid, resource.RLIMIT_NOFILE, (64, 4096))
    conns = [once.connect() for _ in range(100)]
    wait_until(lambda: len(os.listdir('/proc/%d/fd' % once.pid)) == 64,
               'no descriptor is left')
    for conn in conns:
        conn.close()
    resource.prlimit(once.pid, resource.RLIMIT_NOFILE, (1024, 4096))

    def served():
        return once.post('k').status == 201
    wait_until(served, 'served again')
    assert os.path.exists(once.socket)
