"""Real web servers, on loopback, with the configurations of examples/.

Each example is used as it is but for the paths and the port that it names;
what stands around it here is what a distribution's main file would give.
"""
import os
import pwd
import re
import shutil
import socket
import subprocess

import answer as answer_module
import base
import proc
from answer import Answer

KINDS = ('lighttpd', 'lighttpd-bin-path', 'nginx', 'apache-proxy-fcgi',
         'apache-fcgid')
# Those that connect to a socket, and those that start oncewrap themselves.
CONNECTING = ('lighttpd', 'nginx', 'apache-proxy-fcgi')
SPAWNING = ('lighttpd-bin-path', 'apache-fcgid')
# Those of the operator's page, with a password.
PAGES = ('lighttpd-page', 'nginx-page', 'apache-page')

APACHE_MODULES = '/usr/lib/apache2/modules'


PORTS = []      # sockets that keep ports for this case


def free_port():
    """No other program is given it by the kernel while the case lives: it is
    bound, and nothing listens.  A server that sets SO_REUSEADDR may bind it,
    too."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', 0))
    PORTS.append(s)
    return s.getsockname()[1]


def example(name, replacements):
    """The text of an example, with other paths in it."""
    path = os.path.join(base.EXAMPLES, name)
    if not os.path.exists(path):
        path = path.replace('.conf', '.conf.in')
    with open(path) as f:
        text = f.read()
    for old, new in replacements:
        assert old in text, '%s does not name %s' % (name, old)
        text = text.replace(old, new)
    return text


def install(t, *names):
    """Puts programs of examples/ into cgi-bin/; those in C are compiled."""
    os.makedirs(t.path('cgi-bin'))
    for name in names:
        source = os.path.join(base.EXAMPLES, name)
        if os.path.exists(source + '.c'):
            subprocess.run([os.environ.get('CC', 'cc'), '-o',
                            t.path('cgi-bin', name), source + '.c'],
                           check=True)
        else:
            shutil.copy(source, t.path('cgi-bin'))
    # Where PHP has its sessions.
    t.write('cgi-bin/.user.ini', 'session.save_path = "%s"\n' % t.dir)


def start_example(t, name, more='', **options):
    """An oncewrap with the configuration of an example; more: lines of its
    [server]."""
    once = t.once(start=False, **options)
    once.write_conf(example(name, (
        ('/var/lib/oncewrap/oncewrap.db', once.database),
        ('/run/oncewrap/oncewrap.sock', once.socket + more))))
    once.start()
    os.chmod(once.socket, 0o666)
    return once


class Server:
    def __init__(self, t, kind, once, before='', inside='', more=()):
        self.t, self.kind = t, kind
        self.more = list(more)      # replacements in the example
        self.once = once
        self.before, self.inside = before, inside
        self.dir = t.path(kind)
        self.cgi = t.path('cgi-bin')
        for path in (self.dir, self.cgi, t.path('htdocs'),
                     os.path.join(self.dir, 'tmp')):
            os.makedirs(path, exist_ok=True)
        self.process = None
        for attempt in range(3):
            self.port = free_port()
            if self.start():
                return
        raise AssertionError('%s does not start' % kind)

    @property
    def url(self):
        return 'http://127.0.0.1:%d' % self.port

    def start(self):
        make = {'lighttpd': self.lighttpd, 'nginx': self.nginx,
                'lighttpd-bin-path': self.lighttpd,
                'lighttpd-block': self.lighttpd_block,
                'busybox': self.busybox,
                'apache-proxy-fcgi': self.apache,
                'apache-fcgid': self.apache, 'lighttpd-page': self.lighttpd,
                'nginx-page': self.nginx,
                'apache-page': self.apache}[self.kind]
        argv = make()
        self.process = self.t.popen(argv, self.kind + '.log',
                                    stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL)
        self.t.deferred.pop()       # stopped more gently than others
        self.t.defer(self.stop)
        if 'apache' in self.kind:
            self.t.logs.append(('error.log',
                                os.path.join(self.dir, 'error.log')))

        def listening():
            if self.process.poll() is not None:
                return 'ended'
            try:
                socket.create_connection(('127.0.0.1', self.port)).close()
                return 'listens'
            except OSError:
                return None
        return base.wait_until(listening, '%s listens' % self.kind) == \
            'listens'

    def stop(self):
        started = []
        if self.process.poll() is None:
            started = proc.descendants(self.process.pid)
            self.process.terminate()
            try:
                self.process.wait(10 * base.SLOW)
            except subprocess.TimeoutExpired:
                pass
        base.end(self.process)
        # An oncewrap that lighttpd started needs its store until it has ended.
        base.wait_until(lambda: not any(proc.alive(pid) for pid in started),
                        'what it started has ended')
        # Of an oncewrap that it started, too.
        for label, path in self.t.logs:
            if os.path.exists(path):
                with open(path, 'rb') as f:
                    base.check_log(f.read().decode('utf-8', 'replace'))

    def replacements(self, *more):
        if self.kind in PAGES:
            return [('/run/oncewrap/oncewrap.sock', self.once.socket),
                    ('/etc/oncewrap.htpasswd', self.t.path('htpasswd'))] + \
                list(more)
        out = [('/usr/lib/cgi-bin', self.cgi)] + self.more + list(more)
        if self.kind in CONNECTING:
            address = self.once if isinstance(self.once, str) else \
                self.once.socket
            out.append(('/run/oncewrap/oncewrap.sock', address))
        else:
            out += [('/usr/sbin/oncewrap', base.ONCEWRAP),
                    ('/etc/oncewrap.conf', self.once.file)]
        return out

    def file(self, text):
        return self.t.write('%s/server.conf' % self.kind, text)

    def lighttpd(self):
        more = []
        if self.kind == 'lighttpd-bin-path':
            more = [('/run/lighttpd/oncewrap.sock',
                     os.path.join(self.dir, 'once.sock'))]
        self.t.write('%s/example.conf' % self.kind,
                     example(self.kind + '.conf', self.replacements(*more)))
        path = self.file('''
server.bind = "127.0.0.1"
server.port = %(port)d
server.document-root = "%(docs)s"
server.upload-dirs = ( "%(dir)s/tmp" )
server.modules = ( )
%(before)s
include "%(dir)s/example.conf"
%(inside)s
''' % self.values())
        return [base.need('lighttpd'), '-D', '-f', path]

    def lighttpd_block(self):
        """Without an example: before has all of it."""
        return [base.need('lighttpd'), '-D', '-f', self.file('''
server.bind = "127.0.0.1"
server.port = %(port)d
server.document-root = "%(docs)s"
server.upload-dirs = ( "%(dir)s/tmp" )
%(before)s
''' % self.values())]

    def busybox(self):
        """Its CGI programs are in htdocs/cgi-bin; inside is its
        configuration."""
        return [base.need('busybox'), 'httpd', '-f', '-p',
                '127.0.0.1:%d' % self.port, '-h', self.t.path('htdocs'),
                '-c', self.file(self.inside)]

    def values(self):
        return dict(port=self.port, dir=self.dir, docs=self.t.path('htdocs'),
                    before=self.before, inside=self.inside)

    def nginx(self):
        self.t.write('%s/example.conf' % self.kind, example(
            self.kind + '.conf', self.replacements(
                ('listen 80;', 'listen 127.0.0.1:%d;\n%s' %
                 (self.port, self.inside)))))
        user = pwd.getpwuid(os.getuid()).pw_name
        path = self.file('''
daemon off;
%(user)s
worker_processes 2;
pid %(dir)s/nginx.pid;
error_log stderr;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path %(dir)s/tmp/body;
	fastcgi_temp_path %(dir)s/tmp/fastcgi;
	proxy_temp_path %(dir)s/tmp/proxy;
	scgi_temp_path %(dir)s/tmp/scgi;
	uwsgi_temp_path %(dir)s/tmp/uwsgi;
	%(before)s
	include %(dir)s/example.conf;
}
''' % dict(self.values(),
           user='user %s;' % user if os.geteuid() == 0 else ''))
        return [base.need('nginx'), '-c', path, '-p', self.dir, '-e',
                'stderr']

    def apache(self):
        self.t.write('%s/example.conf' % self.kind,
                     example(self.kind + '.conf', self.replacements()))
        wanted = ['mpm_event', 'authz_core', 'alias', 'env', 'setenvif',
                  'headers']
        wanted += ['fcgid'] if 'fcgid' in self.kind else \
            ['proxy', 'proxy_fcgi']
        if 'RewriteEngine' in self.inside:
            wanted += ['rewrite']
        if self.kind in PAGES:
            wanted += ['authn_core', 'authn_file', 'auth_basic', 'authz_user']
        load = ''.join('LoadModule %s_module %s/mod_%s.so\n' %
                       (m, APACHE_MODULES, m) for m in wanted)
        user = ''
        if os.geteuid() == 0:
            # httpd does not serve as root.
            user = 'User www-data\nGroup www-data\n'
            www = pwd.getpwnam('www-data')
            for path in (self.t.dir, self.dir):
                os.chown(path, www.pw_uid, www.pw_gid)
        fcgid = '' if 'fcgid' not in self.kind else '''
FcgidIPCDir %s/tmp
FcgidProcessTableFile %s/fcgid.shm
''' % (self.dir, self.dir)
        if fcgid and base.POSTGRES:
            state = os.path.join(self.dir, 'state')
            os.makedirs(state, exist_ok=True)
            fcgid += 'FcgidInitialEnv ONCEWRAP_MODULES %s\n' \
                'FcgidInitialEnv STATE_DIRECTORY %s\n' % (base.MODULES, state)
        if fcgid and user:
            for folder in os.listdir(self.dir):
                os.chown(os.path.join(self.dir, folder), www.pw_uid,
                         www.pw_gid)
        path = self.file('''
ServerRoot %(dir)s
ServerName localhost
Listen 127.0.0.1:%(port)d
PidFile %(dir)s/httpd.pid
DefaultRuntimeDir %(dir)s
Mutex file:%(dir)s
%(load)s
%(user)s
%(fcgid)s
StartServers 1
ThreadsPerChild 64
MaxRequestWorkers 128
ServerLimit 2
ThreadLimit 64
ErrorLog %(dir)s/error.log
LogLevel warn
DocumentRoot %(docs)s
%(before)s
Include %(dir)s/example.conf
%(inside)s
''' % dict(self.values(), load=load, user=user, fcgid=fcgid))
        return [base.need('apache2'), '-D', 'FOREGROUND', '-f', path]

    # --- clients ---

    def curl(self, path='/cgi-bin/pay', method='POST', key=None, body=None,
             headers=(), args=(), timeout=None):
        """One request by curl; headers are whole lines."""
        return curl(self.t, self.url + path, method, key, body, headers,
                    args, timeout)

    def raw(self, data):
        """Sends bytes as they are; all that comes back until it closes."""
        with socket.create_connection(('127.0.0.1', self.port)) as s:
            s.settimeout(base.WAIT * base.SLOW)
            s.sendall(data)
            out = b''
            while True:
                more = s.recv(65536)
                if not more:
                    return out
                out += more


def curl(t, url, method='POST', key=None, body=None, headers=(), args=(),
         timeout=None):
    t.counter += 1
    head = t.path('curl%d.%s' % (t.counter, 'head'))
    out = t.path('curl%d.%s' % (t.counter, 'body'))
    argv = [base.need('curl'), '-sS', '--http1.1', '--path-as-is', '-D', head,
            '-o', out, '-m', str(timeout or base.WAIT * base.SLOW)]
    argv += ['-I'] if method == 'HEAD' else ['-X', method]
    if key is not None:
        headers = ['Idempotency-Key: ' + key] + list(headers)
    for line in headers:
        argv += ['-H', line]
    if body is not None:
        argv += ['--data-binary', '@-']
        if not any(h.lower().startswith('content-type:') for h in headers):
            argv += ['-H', 'Content-Type: application/octet-stream']
    elif method == 'POST':
        argv += ['-H', 'Content-Length: 0']
    run = t.run(argv + list(args) + [url],
                input=body.encode() if isinstance(body, str) else body)
    data = b''
    if os.path.exists(head):
        with open(head, 'rb') as f:
            data = f.read()
    content = b''
    if os.path.exists(out):
        with open(out, 'rb') as f:
            content = f.read()
    assert run.returncode == 0, 'curl: exit %d: %s; head %r, body %r' % (
        run.returncode, run.stderr.decode('utf-8', 'replace').strip(),
        data[-400:], content[:200])
    # The last head counts: 100 Continue may come before it.
    heads = [h for h in re.split(rb'\r?\n\r?\n', data) if h]
    line, _, fields = heads[-1].partition(b'\n')
    parts = line.decode('latin-1').strip().split(' ', 2)
    parsed, _ = answer_module.parse_head(
        fields + b'\r\n\r\n' if fields else b'\r\n\r\n')
    for path in (head, out):
        if os.path.exists(path):
            os.unlink(path)
    if method == 'HEAD':
        content = b''
    return Answer(int(parts[1]), parsed, content,
                  reason=parts[2] if len(parts) > 2 else '')


def start(t, kind, once, **kw):
    return Server(t, kind, once, **kw)


def fcgiwrap(t, name='fcgiwrap.sock'):
    """fcgiwrap on a unix socket, to compare with; the socket's path."""
    path = t.path(name)
    t.popen([base.need('fcgiwrap'), '-s', 'unix:' + path],
            'fcgiwrap.log', stdin=subprocess.DEVNULL)

    def listening():
        try:
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            s.close()
            return True
        except OSError:
            return False
    base.wait_until(listening, 'fcgiwrap listens')
    os.chmod(path, 0o666)
    return path
