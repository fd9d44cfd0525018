#!/usr/bin/python3 -ISB
"""A handler that does what QUERY_STRING says, as CGI or as FastCGI.

    kinds.py FOLDER [manager]

With manager a child of it answers, as that of a process manager.  It is
FastCGI if descriptor 0 is a socket that listens.  Each run is a line of
FOLDER/ledger.  Words of QUERY_STRING, joined by "+":

    201          its status, and a whole answer
    says=WORD    Idempotency-Outcome
    exit=N       its exit status
    none, headless, short, two    no answer; or one with no single reading
    size=N       bytes of body more
    gate, deaf   waits at FOLDER/gate; the same, and ignores SIGTERM
    die=N        kills itself by that signal, after what came before
    leave=N      ends without END_REQUEST, exit status N or 0; as CGI by
                 SIGKILL
    child=WORD   leaves a process behind: plain, shed (without descriptors),
                 far (the same in a session of its own)
    err=TEXT, log=TEXT    a line on descriptor 2, or as a record of errors
    respond      its answer is given by oncectl
    quit         ends after the answer
    orphan       its manager is killed
    shut         shuts its listening socket, and stays after its answer
    refuse       END_REQUEST with FCGI_OVERLOADED; as CGI exit 75
"""
import os
import signal
import socket
import struct
import subprocess
import sys

D = sys.argv[1]
BEGIN, END, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7


class Gone(Exception):
    pass


class Cgi:
    def __init__(self):
        self.env = dict(os.environ)
        self.body = sys.stdin.buffer.read()

    def out(self, data):
        os.write(1, data)

    def err(self, data):
        os.write(2, data)

    def end(self, status):
        os._exit(status)

    def leave(self, _):
        os.kill(os.getpid(), signal.SIGKILL)

    def refuse(self):
        self.end(75)


class FastCgi:
    def __init__(self, conn):
        self.conn, self.data, self.body = conn, b'', b''
        pairs = b''
        ended = False
        while not ended:
            kind, content = self.record()
            if kind == PARAMS:
                pairs += content
            elif kind == STDIN:
                self.body += content
                ended = not content
        self.env = dict(self.split(pairs))

    def read(self, n):
        while len(self.data) < n:
            more = self.conn.recv(65536)
            if not more:
                raise Gone()
            self.data += more
        out, self.data = self.data[:n], self.data[n:]
        return out

    def record(self):
        _, kind, _, length, padding, _ = struct.unpack(
            '>BBHHBB', self.read(8))
        content = self.read(length)
        self.read(padding)
        return kind, content

    @staticmethod
    def split(data):
        at = 0

        def size():
            nonlocal at
            n = data[at]
            at += 1
            if n & 128:
                n = struct.unpack('>I', data[at - 1:at + 3])[0] & 0x7fffffff
                at += 3
            return n
        while at < len(data):
            name, value = size(), size()
            yield (data[at:at + name].decode('latin-1'),
                   data[at + name:at + name + value].decode('latin-1'))
            at += name + value

    def send(self, kind, content):
        self.conn.sendall(struct.pack('>BBHHBB', 1, kind, 1, len(content),
                                      0, 0) + content)

    def out(self, data):
        for at in range(0, len(data), 65535):
            self.send(STDOUT, data[at:at + 65535])

    def err(self, data):
        self.send(STDERR, data)

    def end(self, status, why=0):
        self.send(STDOUT, b'')
        self.send(END, struct.pack('>IB3x', status, why))
        self.conn.close()

    def refuse(self):
        self.send(END, struct.pack('>IB3x', 0, 2))

    def leave(self, status):
        os._exit(status)


def ledger(run):
    with open(D + '/ledger', 'a') as f:
        f.write('%s %s\n' % (run.env.get('ONCE_ATTEMPT', ''), os.getpid()))


def gate():
    with open(D + '/gate.here', 'w') as f:
        f.write('%d\n' % os.getpid())
    with open(D + '/gate.open', 'rb', buffering=0) as f:
        f.read(1)


def child(how):
    done, doing = os.pipe()
    if os.fork():
        os.close(doing)
        os.read(done, 1)
        os.close(done)
        return
    if how == 'far':
        os.setsid()
    if how != 'plain':
        os.closerange(0, 64)
    os.closerange(done, doing + 1)
    signal.pause()


def do(run):
    ledger(run)
    says, status, at_end = '', 0, lambda: None
    for word in run.env.get('QUERY_STRING', '').split('+'):
        name, _, value = word.partition('=')
        if name.isdigit():
            run.out(b'Status: %s\r\n%sContent-Type: text/plain\r\n\r\n'
                    b'%d %s\n' % (name.encode(), says.encode(), os.getpid(),
                                  run.env.get('ONCE_ATTEMPT', '').encode()))
        elif name == 'echo':
            run.out(run.body)
        elif name == 'says':
            says = 'Idempotency-Outcome: %s\r\n' % value
        elif name == 'size':
            run.out(b'x' * int(value))
        elif name == 'headless':
            run.out(b'no head at all')
        elif name == 'short':
            run.out(b'Status: 200\r\nContent-Length: 100\r\n\r\nshort')
        elif name == 'two':
            run.out(b'Status: 200\r\nStatus: 500\r\n\r\n')
        elif name == 'exit':
            status = int(value)
        elif name == 'gate':
            gate()
        elif name == 'deaf':
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            gate()
        elif name == 'die':
            os.kill(os.getpid(), int(value))
            signal.pause()
        elif name == 'leave':
            run.leave(int(value or '0'))
        elif name == 'child':
            child(value)
        elif name == 'err':
            os.write(2, value.encode() + b'\n')
        elif name == 'log':
            run.err(value.encode() + b'\n')
        elif name == 'respond':
            oncectl = os.path.join(os.path.dirname(__file__), 'oncectl')
            subprocess.run([oncectl, 'respond'], env=run.env, check=True,
                           input=b'Status: 203\n\nanswered')
        elif name == 'orphan':
            os.kill(os.getppid(), signal.SIGKILL)
        elif name == 'shut':
            socket.socket(fileno=os.dup(0)).shutdown(socket.SHUT_RDWR)
            at_end = signal.pause
        elif name == 'refuse':
            return run.refuse()
        elif name == 'quit':
            run.end(status)
            sys.exit(0)
    run.end(status)
    at_end()


def main():
    try:
        os.stat('/proc/self/fd/0')
        listener = socket.socket(fileno=os.dup(0))
        listens = listener.getsockopt(socket.SOL_SOCKET,
                                      socket.SO_ACCEPTCONN)
    except OSError:
        listens = False
    if not listens:
        do(Cgi())
    if len(sys.argv) > 2 and os.fork():
        signal.pause()
    while True:
        conn, _ = listener.accept()
        try:
            do(FastCgi(conn))
        except Gone:
            conn.close()


main()
