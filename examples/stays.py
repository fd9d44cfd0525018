#!/usr/bin/python3
"""A program that stays (protocol = fastcgi), with Python's own library alone:
it counts what it was asked to do, once for each key.

    handler  = /usr/lib/cgi-bin/stays.py
    protocol = fastcgi

A program that listens on descriptor 0, and gets one request at a time, needs no
more of FastCGI than what stands above answer().
"""
import os
import socket
import struct

END_REQUEST, PARAMS, STDIN, STDOUT = 3, 4, 5, 6
deeds = 0


def records(conn):
    """(type, content) of each record that comes."""
    stream = conn.makefile('rb')
    while True:
        head = stream.read(8)
        if len(head) < 8:
            raise EOFError
        _, kind, _, length, padding, _ = struct.unpack('>BBHHBB', head)
        yield kind, stream.read(length + padding)[:length]


def variables(data):
    """The names and values of PARAMS; a length has one byte or four."""
    at, sizes = 0, []
    while at < len(data):
        if data[at] < 128:
            sizes.append(data[at])
            at += 1
        else:
            sizes.append(struct.unpack_from('>I', data, at)[0] & 0x7fffffff)
            at += 4
        if len(sizes) == 2:
            middle, end = at + sizes[0], at + sum(sizes)
            yield os.fsdecode(data[at:middle]), os.fsdecode(data[middle:end])
            at, sizes = end, []


def serve(conn):
    params = body = b''
    for kind, content in records(conn):
        if kind == PARAMS:
            params += content
        elif kind == STDIN and content:
            body += content
        elif kind == STDIN:
            break
    out = answer(dict(variables(params)), body)
    for at in range(0, len(out), 65535):
        piece = out[at:at + 65535]
        conn.sendall(struct.pack('>BBHHBB', 1, STDOUT, 1, len(piece), 0, 0) +
                     piece)
    # The exit status, 0, and "request complete".
    conn.sendall(struct.pack('>BBHHBBIB3x', 1, END_REQUEST, 1, 8, 0, 0, 0, 0))


def answer(env, body):
    global deeds
    deeds += 1
    return b'Status: 201 Created\r\nContent-Type: text/plain\r\n\r\n' + \
        b'deed %d of process %d: attempt %s, %s\n' % (
            deeds, os.getpid(), env.get('ONCE_ATTEMPT', '-').encode(), body)


with socket.socket(fileno=0) as listener:
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                serve(connection)
            except (EOFError, OSError):
                pass    # oncewrap went away, and takes no answer
