"""A FastCGI client that can say anything, the impossible included."""
import os
import select
import socket
import struct
import time

import answer as answer_module
from answer import Answer

(BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA, GET_VALUES,
 GET_VALUES_RESULT, UNKNOWN) = range(1, 12)
RESPONDER, AUTHORIZER, FILTER = 1, 2, 3
KEEP_CONN = 1
REQUEST_COMPLETE, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE = range(4)


def record(kind, id, content=b'', padding=0, version=1, length=None):
    return struct.pack('>BBHHBB', version, kind, id,
                       len(content) if length is None else length,
                       padding, 0) + content + b'\0' * padding


def begin(id=1, role=RESPONDER, keep=False):
    return record(BEGIN, id, struct.pack('>HB5x', role, KEEP_CONN * keep))


def size(n):
    return struct.pack('>B', n) if n < 128 else \
        struct.pack('>I', n | 0x80000000)


def pair(name, value):
    name, value = (x if isinstance(x, bytes) else str(x).encode()
                   for x in (name, value))
    return size(len(name)) + size(len(value)) + name + value


def pairs(values):
    return b''.join(pair(n, v) for n, v in
                    (values.items() if isinstance(values, dict) else values))


def stream(kind, id, content, piece=65535, end=True):
    """A stream in records of at most piece bytes, and its empty last one."""
    out = [record(kind, id, content[i:i + piece])
           for i in range(0, len(content), piece)]
    return b''.join(out) + (record(kind, id) if end else b'')


def request_params(method='GET', path='/', body=b'', headers=(), params=(),
                   key=None, length=True, type=None, info='', query='',
                   user=None, address='127.0.0.1'):
    """What a web server would send, as a list of pairs."""
    out = [('GATEWAY_INTERFACE', 'CGI/1.1'),
           ('SERVER_PROTOCOL', 'HTTP/1.1'),
           ('SERVER_SOFTWARE', 'test'),
           ('SERVER_NAME', 'localhost'), ('SERVER_PORT', '80'),
           ('REMOTE_ADDR', address), ('REMOTE_PORT', '40000'),
           ('REQUEST_METHOD', method),
           ('SCRIPT_NAME', path), ('PATH_INFO', info),
           ('QUERY_STRING', query),
           ('REQUEST_URI', path + info + ('?' + query if query else ''))]
    if user is not None:
        out.append(('REMOTE_USER', user))
    if type is not None:
        out.append(('CONTENT_TYPE', type))
    if length is True:
        length = len(body) if body or method in ('POST', 'PUT', 'PATCH') \
            else None
    if length is not None and length is not False:
        out.append(('CONTENT_LENGTH', length))
    for n, v in (headers.items() if isinstance(headers, dict) else headers):
        out.append(('HTTP_' + n.upper().replace('-', '_'), v))
    if key is not None:
        for k in ([key] if isinstance(key, (str, bytes)) else key):
            out.append(('HTTP_IDEMPOTENCY_KEY', k))
    extra = list(params.items() if isinstance(params, dict) else params)
    names = {n for n, _ in extra}
    out = [(n, v) for n, v in out if n not in names]
    # A parameter set to None is left out.
    return out + [(n, v) for n, v in extra if v is not None]


class Closed(Exception):
    """The responder closed the connection."""


class Conn:
    """One connection to a responder."""

    def __init__(self, address, timeout=20):
        family = socket.AF_UNIX if isinstance(address, str) else \
            socket.AF_INET6 if ':' in address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        # With a timeout, connect() to a Unix socket would not wait for room in
        # the queue of those that are not accepted yet.
        self.sock.connect(address)
        self.sock.settimeout(timeout)
        self.data = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def end_sending(self):
        self.sock.shutdown(socket.SHUT_WR)

    def send(self, *parts):
        """Sends all, though the responder may close meanwhile."""
        for part in parts:
            self.sock.sendall(part)

    def try_send(self, *parts):
        """Whether all could be sent."""
        try:
            self.send(*parts)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def read(self, n):
        while len(self.data) < n:
            try:
                more = self.sock.recv(1 << 16)
            except ConnectionResetError:
                raise Closed('reset')
            if not more:
                raise Closed('closed with %d bytes left' % len(self.data))
            self.data += more
        out, self.data = self.data[:n], self.data[n:]
        return out

    def record(self):
        """The next (kind, id, content)."""
        version, kind, id, length, padding, _ = struct.unpack(
            '>BBHHBB', self.read(8))
        assert version == 1, 'record version %d' % version
        content = self.read(length)
        self.read(padding)
        return kind, id, content

    def is_closed(self, seconds=10):
        """Waits for the responder to close; data that comes is a failure."""
        self.sock.settimeout(seconds)
        try:
            kind, id, content = self.record()
        except Closed:
            return True
        except socket.timeout:
            return False
        raise AssertionError('record %d for %d: %r' % (kind, id, content))

    def silent(self, seconds=0.0):
        """Nothing has come yet."""
        return not self.data and \
            not select.select([self.sock], [], [], seconds)[0]

    def answer(self, id=1, read=b''):
        """Reads one answer to its END_REQUEST; read: what came before."""
        out = bytearray(read)
        err = bytearray()
        broken = app = protocol = None
        try:
            while True:
                kind, rid, content = self.record()
                assert rid == id, 'record %d of request %d' % (kind, rid)
                if kind == STDOUT:
                    out += content
                elif kind == STDERR:
                    err += content
                elif kind == END:
                    app, protocol = struct.unpack('>IB3x', content)
                    break
                else:
                    raise AssertionError('record of kind %d' % kind)
        except Closed as closed:
            broken = str(closed)
            if not out:
                raise
        more = dict(app_status=app, protocol_status=protocol,
                    stderr=bytes(err), broken=broken, raw=bytes(out))
        if not out:
            return Answer(None, [], b'', **more)
        return make_answer(bytes(out), **more)

    def first_bytes(self, n=1):
        """Reads STDOUT records until n bytes of output are here."""
        out = b''
        while len(out) < n:
            kind, _, content = self.record()
            assert kind == STDOUT, 'record of kind %d: %r' % (kind, content)
            assert content, 'end of output after %r' % out
            out += content
        return out


def make_answer(out, **more):
    fields, body = answer_module.parse_head(out)
    values = [v for n, v in fields if n.lower() == 'status']
    assert len(values) <= 1, 'more than one Status: %r' % out[:400]
    status, reason = 200, ''
    if values:
        code, _, reason = values[0].partition(' ')
        status = int(code)
    elif any(n.lower() == 'location' for n, _ in fields):
        status = None       # a local redirect: the web server's to follow
    fields = [(n, v) for n, v in fields if n.lower() != 'status']
    return Answer(status, fields, body, reason=reason, **more)


def full_request(params, body=b'', id=1, keep=False, piece=65535):
    return (begin(id, keep=keep) + stream(PARAMS, id, pairs(params)) +
            stream(STDIN, id, body, piece))


def exchange(address, params, body=b'', timeout=20, id=1):
    """One request on a connection of its own.

    A large body is sent while the answer is read: neither side may make the
    other wait for ever.
    """
    with Conn(address, timeout) as conn:
        data = memoryview(full_request(params, body, id))
        if len(data) <= 65536:
            conn.send(data)
            return conn.answer(id)
        until = time.monotonic() + timeout
        conn.sock.setblocking(False)
        received = []
        while data:
            readable, writable, _ = select.select(
                [conn.sock], [conn.sock], [], until - time.monotonic())
            assert readable or writable, 'stalled with %d bytes left' % \
                len(data)
            if readable:
                try:
                    more = conn.sock.recv(1 << 16)
                except ConnectionResetError:
                    break
                if not more:
                    break
                received.append(more)
            if writable:
                try:
                    data = data[conn.sock.send(data[:1 << 18]):]
                except (BrokenPipeError, ConnectionResetError):
                    break
        conn.sock.settimeout(timeout)
        conn.data = b''.join(received)
        return conn.answer(id)


def unlink(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
