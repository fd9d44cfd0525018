"""The benchmark's load generator: what it would take for right."""
import json
import os
import socket
import subprocess
import threading

import base
from answer import eq

BENCH = os.path.join(base.TOP, 'tests', 'bench')
HEAD = 'HTTP/1.1 201 Created\r\nContent-Length: 4\r\n'


def answering(t, answers):
    """A server that gives each request the next answer, the last for ever,
    and closes a connection after one that says so.  Its port, and requests."""
    listener = socket.create_server(('127.0.0.1', 0))
    t.defer(listener.close)
    requests = []

    def serve():
        n = 0
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            with conn:
                while data := conn.recv(65536):
                    requests.append(data.decode())
                    answer = answers[min(n, len(answers) - 1)]
                    n += 1
                    conn.sendall(answer.encode())
                    if not answer or 'Connection: close' in answer:
                        break
    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1], requests


def load(t, answers, *options):
    """What the generator says of twenty requests."""
    program = t.path('load')
    subprocess.run([os.environ.get('CC', 'cc'), '-O1', '-D_GNU_SOURCE', '-o',
                    program, os.path.join(BENCH, 'load.c')], check=True)
    port, requests = answering(t, answers)
    out = subprocess.run([program, '-n', '20', '-b', '{}', *options,
                          str(port), '/pay'], check=True,
                         stdout=subprocess.PIPE).stdout
    result = json.loads(out)
    return result, requests


def wrong(result):
    return {name: result[name] for name in (
        'failed', 'wrong_status', 'wrong_body', 'wrong_replay')
        if result[name]}


def test_right_answers_are_counted(t):
    body = t.write('body', 'paid')
    result, requests = load(t, [HEAD + '\r\npaid'], '-s', '201', '-f', '-e',
                            body)
    eq(wrong(result), {})
    eq(result['requests'], 20)
    eq(len(requests), 20)


def test_another_status_is_wrong(t):
    other = HEAD.replace('201 Created', '503 Service Unavailable')
    result, _ = load(t, [HEAD + '\r\npaid', other + '\r\npaid'], '-s', '201')
    eq(wrong(result), {'wrong_status': 19})
    eq(result['other_status'], 503)


def test_another_body_is_wrong(t):
    body = t.write('body', 'paid')
    result, _ = load(t, [HEAD + '\r\npaid', HEAD + '\r\nlaid'], '-e', body)
    eq(wrong(result), {'wrong_body': 19})


def test_a_replay_without_its_mark_is_wrong(t):
    marked = HEAD + 'Idempotent-Replayed: true\r\n\r\npaid'
    result, _ = load(t, [marked, HEAD + '\r\npaid'], '-r')
    eq(wrong(result), {'wrong_replay': 19})


def test_a_first_answer_that_is_a_replay_is_wrong(t):
    marked = HEAD + 'Idempotent-Replayed: true\r\n\r\npaid'
    result, _ = load(t, [HEAD + '\r\npaid', marked], '-f')
    eq(wrong(result), {'wrong_replay': 19})


def test_a_connection_that_closes_in_mid_request_is_a_failure(t):
    result, _ = load(t, [HEAD + '\r\npaid', '', HEAD + '\r\npaid'])
    eq(wrong(result), {'failed': 1})


def test_a_connection_that_says_that_it_closes_is_none(t):
    closing = HEAD + 'Connection: close\r\n\r\npaid'
    result, requests = load(t, [closing])
    eq(wrong(result), {})
    eq(len(requests), 20)


def keys(requests):
    return [line.split('"')[1] for request in requests
            for line in request.split('\r\n')
            if line.startswith('Idempotency-Key: "')]


def test_new_keys_are_used_once_and_old_ones_are_among_them(t):
    _, requests = load(t, [HEAD + '\r\npaid'], '-k', 'new:7')
    new = keys(requests)
    eq(len(set(new)), 20)
    assert all(len(key) == 32 for key in new), new
    _, requests = load(t, [HEAD + '\r\npaid'], '-k', 'of:7:10:10')
    old = keys(requests)
    eq(len(old), 20)
    assert set(old) <= set(new[10:]), (new, old)
    _, requests = load(t, [HEAD + '\r\npaid'], '-k', 'new:8')
    assert not set(keys(requests)) & set(new)


def test_without_keys_there_is_no_field(t):
    _, requests = load(t, [HEAD + '\r\npaid'])
    assert not any('Idempotency' in request for request in requests)
    _, requests = load(t, [HEAD + '\r\npaid'], '-k', 'one:same')
    eq(set(keys(requests)), {'same'})
