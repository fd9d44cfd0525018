"""What handlers can still do below the hardening of the units in examples/.

The unit is as it is shipped.  Where a case needs one of its drop-ins, the case
says so.
"""
import os
import pwd
import shutil
import signal
import socketserver
import stat
import threading

from base import wait_until
from service import (CONF, HERE, SERVICE, UNITS, eq, journal, request, run,
                     show, systemctl, write)

FOLDER = '/usr/lib/cgi-bin/'
CONFIGURATION = '''[server]
database = /var/lib/oncewrap/oncewrap.db
%s'''
DROP_INS = UNITS + 'oncewrap.service.d'
SMTP, HTTP = 2525, 8080

SHELL = r'''#!/bin/sh
set -e
file=$(mktemp)
nice -n 5 echo "$ONCE_KEY" 2>/dev/null | tr a-z A-Z >"$file"
cp -p "$file" /var/lib/oncewrap/kept
rm "$file"
text="$(id -un) $(cat /var/lib/oncewrap/kept)"
printf 'Status: 201 Created\r\n\r\n%s' "$text"
'''
PERL = r'''#!/usr/bin/perl
use strict;
use warnings;
use POSIX ();
POSIX::setuid($<) or die "setuid: $!";
my $pid = open(my $child, '-|') // die "fork: $!";
if (!$pid) { print "perl $ENV{ONCE_KEY}"; exit 0; }
my $text = <$child>;
close($child) or die "child: $?";
print "Status: 201 Created\r\n\r\n$text";
'''
# Calls from C into Python need memory that is written, and then executed.
PYTHON = r'''#!/usr/bin/python3
import ctypes, os, subprocess, tempfile
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                        ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 3)(3, 1, 2)
ctypes.CDLL(None).qsort(numbers, 3, ctypes.sizeof(ctypes.c_int),
                        kind(lambda a, b: a[0] - b[0]))
with tempfile.TemporaryFile() as f:
    f.write(subprocess.check_output(['echo', os.environ['ONCE_KEY']]))
    f.seek(0)
    text = '%s %s' % (list(numbers), f.read().decode().strip())
print('Status: 201 Created\r\n\r\n' + text, end='')
'''
# Without such memory PCRE warns, and goes on without its compiler.
PHP = r'''#!/usr/bin/php-cgi
<?php
http_response_code(201);
ini_set('pcre.jit', '1');
preg_match('/^(a|b)+-([a-z]+)$/', 'abab-' . getenv('ONCE_KEY'), $found);
echo $found[2] . ' ' . (error_get_last()['message'] ?? 'no warning');
'''
# By name, which getaddrinfo() finds without netlink, and by address.
NETWORK = r'''#!/usr/bin/python3
import socket
text = ''
for host in ('localhost', '127.0.0.1', '::1'):
    try:
        with socket.create_connection((host, 8080), 60) as connection:
            connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
            text += connection.makefile().read().split('\n')[-1]
    except OSError as error:
        text += '%s: %s; ' % (host, error)
print('Status: 201 Created\r\n\r\n' + text, end='')
'''
MSMTP = r'''#!/bin/sh
printf 'Subject: %s\n\nbody\n' "$ONCE_KEY" |
    msmtp --host=127.0.0.1 --port=2525 --from=shop@example.org \
    client@example.org || exit
printf 'Status: 201 Created\r\n\r\nsent'
'''
DMA = r'''#!/bin/sh
printf 'Subject: %s\n\nbody\n' "$ONCE_KEY" |
    /usr/sbin/dma -f shop@example.org client@example.org || exit
printf 'Status: 201 Created\r\n\r\nsent'
'''
WHO = r'''#!/bin/sh
printf 'Status: 201 Created\r\n\r\n%s %s %s' "$(id -un)" "$(id -gn)" \
    "$(sed -n 's/^CapEff:[^0-9]*//p' /proc/self/status)"
'''
ENDLESS = '#!/bin/sh\nexec sleep 1000\n'
# Of its child only the environment tells whose it is.
LEAVES = r'''#!/usr/bin/python3
import os, signal, subprocess
subprocess.Popen(['sleep', '1000'], start_new_session=True)
os.kill(os.getpid(), signal.SIGKILL)
'''


class Mail(socketserver.StreamRequestHandler):
    """An SMTP server that keeps what it gets."""
    got = []

    def handle(self):
        self.say('220 guest')
        while True:
            word = self.rfile.readline().split()[:1]
            if word == [b'DATA']:
                self.say('354 go on')
                lines = list(iter(self.rfile.readline, b'.\r\n'))
                self.got.append(b''.join(lines).decode())
            elif word in ([], [b'QUIT']):
                self.say('221 bye')
                return
            self.say('250 ok')

    def say(self, line):
        self.wfile.write(line.encode() + b'\r\n')


class Page(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            continue
        self.wfile.write(b'HTTP/1.0 200 OK\r\n\r\npage ')


class Server(socketserver.ThreadingTCPServer):
    address_family = 10         # AF_INET6, for IPv4 too
    allow_reuse_address = True
    daemon_threads = True


def serve(port, handler):
    server = Server(('::', port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


settled = []


def settle(more='', drop_in=None):
    """The service runs with that configuration, and that drop-in alone."""
    if settled == [more, drop_in]:
        return
    settled[:] = [more, drop_in]
    shutil.rmtree(DROP_INS, ignore_errors=True)
    if drop_in:
        os.mkdir(DROP_INS)
        shutil.copy(os.path.join(HERE, drop_in), DROP_INS)
    write(CONF, CONFIGURATION % more)
    systemctl('daemon-reload')
    systemctl('restart', SERVICE)


def answer(program, key, status=201):
    """What that program answers: once, and again from the store."""
    write(FOLDER + 'program', program, 0o755)
    params = [('SCRIPT_FILENAME', FOLDER + 'program'),
              ('REDIRECT_STATUS', '200')]
    got = [request(key, path='/program', params=params) for _ in range(2)]
    eq([(a.status, a.replayed) for a in got],
       [(status, None), (status, 'true')], got)
    eq(got[1].body, got[0].body)
    return got[0].body.decode()


def processes(user):
    found = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.stat('/proc/' + name).st_uid == pwd.getpwnam(user).pw_uid:
                found.append(int(name))
        except FileNotFoundError:
            pass
    return found


def exposure():
    """As the running systemd computes it, in tenths."""
    done = run('systemd-analyze', 'security', '--no-pager', SERVICE)
    (line,) = [s for s in done.stdout.splitlines() if 'Overall' in s]
    return round(10 * float(line.split(':')[1].split()[0]))


def test_hardened_unit():
    settle()
    assert exposure() <= 14, exposure()
    eq((show('User'), show('NoNewPrivileges')), ('www-data', 'yes'))


def test_hardened_shell():
    settle()
    eq(answer(SHELL, 'shell'), 'www-data SHELL')


def test_hardened_perl():
    settle()
    eq(answer(PERL, 'perl-key'), 'perl perl-key')


def test_hardened_python():
    settle()
    eq(answer(PYTHON, 'python'), '[1, 2, 3] python')


def test_hardened_php():
    settle()
    eq(answer(PHP, 'php'), 'php no warning')


def test_hardened_network():
    settle()
    write('/etc/hosts', '127.0.0.1 localhost\n::1 localhost\n')
    server = serve(HTTP, Page)
    try:
        eq(answer(NETWORK, 'network'), 'page page page ')
    finally:
        server.shutdown()


def test_hardened_mail_over_smtp():
    settle()
    server = serve(SMTP, Mail)
    try:
        eq(answer(MSMTP, 'msmtp'), 'sent')
    finally:
        server.shutdown()
    eq([m for m in Mail.got if 'Subject: msmtp' in m], Mail.got)
    eq(len(Mail.got), 1)


def as_user(more=''):
    if run('id', 'app').returncode != 0:
        eq(run('useradd', '--system', 'app').returncode, 0)
    settle('[defaults]\nuser = app\n' + more, 'user.conf')


def test_another_user_unit():
    as_user()
    assert exposure() <= 20, exposure()
    eq((show('User'), show('NoNewPrivileges')), ('www-data', 'yes'))


def test_another_user_runs_without_capabilities():
    as_user()
    eq(answer(WHO, 'who'), 'app app %016d' % 0)


def test_another_user_is_ended_at_its_deadline():
    as_user('timeout = 2s\n')
    write(FOLDER + 'program', ENDLESS, 0o755)
    got = request('endless', path='/program',
                  params=[('SCRIPT_FILENAME', FOLDER + 'program')])
    eq(got.status, 504, got)
    eq(processes('app'), [])


def test_another_user_s_child_is_found():
    as_user('timeout = 1h\non_crash = resume\n')
    write(FOLDER + 'program', LEAVES, 0o755)
    got = []
    thread = threading.Thread(daemon=True, target=lambda: got.append(request(
        'left', path='/program', timeout=200,
        params=[('SCRIPT_FILENAME', FOLDER + 'program')])))
    thread.start()
    wait_until(lambda: [line for line in journal()
                        if 'event=children-left' in line and
                        'key=left ' in line], 'the child is found')
    eq(got, [])
    (child,) = processes('app')
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: got, 'an answer')
    eq(got[0].status, 502, got)


def test_setgid_mail():
    """A queue that only the group of its setgid program may write."""
    write('/etc/dma/dma.conf',
          'SMARTHOST 127.0.0.1\nPORT %d\nMAILNAME guest\n' % SMTP)
    assert os.stat('/usr/sbin/dma').st_mode & stat.S_ISGID
    Mail.got.clear()
    server = serve(SMTP, Mail)
    try:
        settle()
        write(FOLDER + 'program', DMA, 0o755)
        got = request('without', path='/program',
                      params=[('SCRIPT_FILENAME', FOLDER + 'program')])
        assert got.status >= 500, got
        settle('[defaults]\nuser = www-data\n', 'setgid.conf')
        eq(answer(WHO, 'who-mails'), 'www-data www-data %016d' % 0)
        eq(answer(DMA, 'with'), 'sent')
        wait_until(lambda: Mail.got, 'the mail')
    finally:
        server.shutdown()
    eq(len(Mail.got), 1, Mail.got)
    assert 'Subject: with\r\n' in Mail.got[0], Mail.got


def test_setgid_unit():
    settle('[defaults]\nuser = www-data\n', 'setgid.conf')
    assert exposure() <= 25, exposure()
    settle()
