#!/usr/bin/python3 -ISB
"""Takes an order; see order.c, which takes the same words."""
import os
import signal
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shared    # noqa: E402

folder, words = sys.argv[1], sys.argv[2:]
for word in words:
    if word.startswith('env='):
        name, _, value = word[4:].partition('=')
        os.environ[name] = value
token = os.environ['ONCE_TOKEN']
size = 0


def ledger(text):
    with open(folder + '/ledger', 'a') as f:
        f.write('%s %s\n' % (os.environ['ONCE_ATTEMPT'], text))


def gate(name):
    with open('%s/%s.here' % (folder, name), 'w') as f:
        f.write('%d\n' % os.getpid())
    open('%s/%s.open' % (folder, name)).readline()


def out(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def order(end):
    db = shared.connect()
    try:
        db.execute('BEGIN IMMEDIATE')
        db.execute("INSERT INTO once_checkpoint(token, recovery_point) "
                   "VALUES (?, 'ordered')", (token,))
        cursor = db.execute('INSERT INTO orders(note) VALUES (?)',
                            (os.environ['ONCE_KEY'],))
        db.execute("INSERT INTO once_outbox(token, topic, payload) "
                   "VALUES (?, 'mail', ?)", (token, 'thanks'))
        body = b'order %d\n' % cursor.lastrowid + b'x' * size
        db.execute('INSERT INTO once_response(token, status, headers, body) '
                   'VALUES (?, ?, ?, ?)',
                   (token, 201, 'Content-Type: text/plain\r\nX-By: python\r\n'
                    'X-Twice: 1\r\nX-Twice: 2', body))
        db.execute(end)
        ledger(end)
    except sqlite3.Error as error:
        ledger('error: %s' % error)
    db.close()


def escape(rest):
    """What goes on is a process that nothing ties to the attempt: without its
    lock, its session and its environment, which come back as arguments."""
    if os.fork() != 0:
        time.sleep(1000)
    os.setsid()
    os.closerange(0, 64)
    for _ in range(3):
        os.open('/dev/null', os.O_RDWR)
    kept = ['env=%s=%s' % (name, os.environ[name])
            for name in os.environ if name.startswith('ONCE_')]
    os.execve(sys.executable, [sys.executable, '-ISB', __file__, folder] +
              kept + rest, {})


for i, word in enumerate(words):
    word, _, value = word.partition('=')
    if word == 'order':
        order('COMMIT')
    elif word == 'rollback':
        order('ROLLBACK')
    elif word == 'gate':
        gate(value)
    elif word == 'size':
        size = int(value)
    elif word == 'escape':
        escape(words[i + 1:])
    elif word == 'print':
        out(b'Status: %s\r\nX-Printed: yes\r\n\r\nprinted\n' % value.encode())
    elif word == 'flood':
        out(b'Status: 200\r\n\r\n' + b'f' * 10000000)
    elif word == 'garbage':
        out(b'no head at all\n')
    elif word == 'outcome':
        out(b'Status: 200\r\nIdempotency-Outcome: %s\r\n\r\n' %
            value.encode())
    elif word == 'exit':
        sys.exit(int(value))
    elif word == 'signal':
        os.kill(os.getpid(), int(value))
        signal.pause()
    elif word == 'sleep':
        signal.pause()
