"""The servers that are compared, and lighttpd in front of them all."""
import glob
import json
import os
import shutil
import signal
import socket
import subprocess

from work import HERE, Failed, Missing, command, find, wait_until

# The paths under which lighttpd has them; each is the name of a socket too.
FASTCGI = ('once', 'bare', 'wrap', 'stay', 'fpm')
# A path that lighttpd shares out among several.
SHARED = {'two': ('once', 'other')}


def command_output(program):
    return subprocess.run([program], stdin=subprocess.DEVNULL, check=True,
                          stdout=subprocess.PIPE).stdout.decode()


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def unlink(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def accepts(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as s:
        try:
            s.connect(address)
            return True
        except OSError:
            return False


class Process:
    """A program that runs until it is told to end.

    In a group of its own, but not in a session: Linux would give each session
    the same share of the processors, whatever it has to do.
    """

    def __init__(self, work, name, argv, address, env=None, **more):
        self.name = name
        self.log = work.path('log', name)
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, **env) if env else None,
                preexec_fn=os.setpgrp, **more)
        wait_until(lambda: self.process.poll() is not None or
                   accepts(address), '%s listens' % name)
        if self.process.poll() is not None:
            raise Failed('%s has ended: %s' % (name, self.said()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def said(self):
        with open(self.log, errors='replace') as f:
            return f.read()[-2000:]

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Share:
    """A control group that gets that share of one processor, as if it were a
    host of its own; root only."""
    PERIOD = 10000      # us

    def __init__(self, name, share):
        quota = '%d' % (share * self.PERIOD)
        for folder, files in (
                ('/sys/fs/cgroup/cpu', {
                    'cpu.cfs_period_us': '%d' % self.PERIOD,
                    'cpu.cfs_quota_us': quota}),
                ('/sys/fs/cgroup', {
                    'cpu.max': '%s %d' % (quota, self.PERIOD)})):
            self.folder = os.path.join(folder, 'oncewrap-bench-%d-%s' % (
                os.getpid(), name))
            try:
                os.mkdir(self.folder)
                for file, text in files.items():
                    self.write(file, text)
                return
            except OSError as error:
                self.why = str(error)
                self.remove()
        raise Missing('no control group for a share of a processor: %s' %
                      self.why)

    def write(self, file, text):
        path = os.path.join(self.folder, file)
        # In a folder that is none of the kernel's it would be made.
        with open(os.open(path, os.O_WRONLY), 'w') as f:
            f.write(text)

    def add(self, process):
        for pid in tree(process.pid):
            self.write('cgroup.procs', str(pid))

    def remove(self):
        try:
            os.rmdir(self.folder)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def status_kb(pid, field='VmRSS'):
    with open('/proc/%d/status' % pid) as f:
        for line in f:
            if line.startswith(field + ':'):
                return int(line.split()[1])
    return 0


def written(pid):
    """Bytes that it and the children it waited for caused to be written."""
    with open('/proc/%d/io' % pid) as f:
        values = dict(line.split(': ') for line in f)
    return int(values['write_bytes'])


def tree(pid):
    """It and its descendants."""
    found = [pid]
    for task in os.listdir('/proc/%d/task' % pid):
        try:
            with open('/proc/%d/task/%s/children' % (pid, task)) as f:
                for child in f.read().split():
                    found += tree(int(child))
        except FileNotFoundError:
            pass
    return found


def processor_us():
    """Of this process, of all that it started, and of those they reaped."""
    ticks = 0
    for pid in tree(os.getpid()):
        try:
            with open('/proc/%d/stat' % pid) as f:
                fields = f.read().rsplit(')', 1)[1].split()
            ticks += sum(int(fields[n]) for n in (11, 12, 13, 14))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return ticks * 1e6 / os.sysconf('SC_CLK_TCK')


def resident_mb(processes):
    """Of several processes: what they share counts once (Pss)."""
    total = 0
    for process in processes:
        for pid in tree(process.pid):
            try:
                with open('/proc/%d/smaps_rollup' % pid) as f:
                    for line in f:
                        if line.startswith('Pss:'):
                            total += int(line.split()[1])
            except (FileNotFoundError, ProcessLookupError):
                pass
    return total / 1024


CONFIGURATION = '''
[server]
database = %(database)s
socket = unix:%(socket)s
workers = %(workers)d
durability = full

[defaults]
key = optional
retention = 365d
timeout = 600s
%(more)s
'''


def configuration(work, database, workers=32, more='', name='once'):
    return work.write('run/%s.conf' % name, CONFIGURATION % dict(
        database=database, socket=work.socket(name),
        workers=workers, more=more))


def remove_database(path):
    for end in ('', '-wal', '-shm', '-lock'):
        unlink(path + end)


def oncewrap(work, database, workers=32, slow=False, more='', name='once'):
    file = configuration(work, database, workers, more, name)
    env = {'ONCEWRAP_MODULES': work.path('bin'),
           'STATE_DIRECTORY': work.path('run')}
    if database.startswith('postgresql:'):
        command([work.program('oncectl'), '-f', file, 'init'],
                env=dict(os.environ, **env))
    if slow:
        env['LD_PRELOAD'] = work.program('slowsync.so')
    return Process(work, name, [work.program('oncewrap'), '-f', file],
                   work.socket(name), env)


def bare(work, answer, threads=32):
    path = work.socket('bare')
    unlink(path)
    return Process(work, 'bare', [work.program('bare'), path, str(threads),
                                  answer], path)


def fcgiwrap(work, children=32):
    path = work.socket('wrap')
    unlink(path)
    program = find('fcgiwrap')
    return Process(work, 'fcgiwrap', [program, '-c', str(children),
                                      '-s', 'unix:' + path], path)


class Group:
    """Processes of one program that accept on one socket, as spawn-fcgi -F."""

    def __init__(self, work, name, argv, count):
        path = work.socket(name)
        unlink(path)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1024)
            with open(work.path('log', name), 'ab') as log:
                self.processes = [subprocess.Popen(
                    argv, stdin=listener, stdout=log, stderr=log)
                    for _ in range(count)]

    def __enter__(self):
        return self.processes

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


FPM = '''[global]
error_log = %(dir)s/log/fpm
daemonize = no
[www]
listen = %(socket)s
listen.backlog = 1024
pm = static
pm.max_children = %(children)d
%(user)s
'''


def fpm(work, children):
    """As Debian has it, with its opcode cache."""
    found = sorted(glob.glob('/usr/sbin/php-fpm[0-9]*'))
    if not found:
        raise Missing('no php-fpm')
    path = work.socket('fpm')
    unlink(path)
    root = os.geteuid() == 0
    file = work.write('run/fpm.conf', FPM % dict(
        dir=work.dir, socket=path, children=children,
        user='user = root\ngroup = root' if root else ''))
    return Process(work, 'fpm', [found[-1], '-F', '-y', file] +
                   ['-R'] * root, path)


def go(work, port, body):
    """The server in Go, built with nothing but its standard library."""
    compiler = find('go')
    if compiler is None:
        raise Missing('no go')
    source = os.path.join(HERE, 'go', 'server.go')
    out = work.path('bin', 'go-server')
    if not (os.path.exists(out) and os.path.getmtime(out) >
            os.path.getmtime(source)):
        command([compiler, 'build', '-o', out, source],
                env=dict(os.environ, GO111MODULE='off', GOFLAGS='',
                         GOPROXY='off', GOCACHE=work.path('tmp', 'go')))
    return Process(work, 'go', [out, str(port), work.socket('go-redis'), body],
                   ('127.0.0.1', port))


def install_express(work):
    """The folder with it, as npm has made it."""
    if not (find('node') and find('npm')):
        raise Missing('no node, or no npm')
    folder = work.path('express')
    source = os.path.join(HERE, 'express')
    wanted, there = (os.path.join(place, 'package.json')
                     for place in (source, folder))
    with open(wanted) as f:
        text = f.read()
    if not (os.path.exists(there) and open(there).read() == text):
        work.remove('express')
        os.mkdir(folder)
        shutil.copy(wanted, there)
        try:
            command(['npm', 'install', '--no-audit', '--no-fund',
                     '--no-package-lock', '--omit=dev'], cwd=folder,
                    timeout=600)
        except (Failed, subprocess.TimeoutExpired) as error:
            work.remove('express')
            raise Missing('npm install: %s' % str(error).split('\n')[-1])
    shutil.copy(os.path.join(source, 'server.js'), folder)
    return folder


def redis(work, name='redis'):
    """An empty one, with a folder and a socket of that name."""
    if not find('redis-server'):
        raise Missing('no redis-server')
    path = work.socket(name)
    work.remove('run', name)
    os.mkdir(work.path('run', name))
    return Process(work, name, [
        find('redis-server'), '--port', '0', '--unixsocket', path, '--dir',
        work.path('run', name), '--appendonly', 'yes', '--appendfsync',
        'always', '--save', ''], path)


def express(work, folder, port, body):
    return Process(work, 'express', [
        find('node'), os.path.join(folder, 'server.js'), str(port),
        work.socket('redis'), body], ('127.0.0.1', port),
        {'NODE_ENV': 'production'})


class Pagecap:
    """Keeps the pages of files, and a process's memory, below a limit."""

    def __init__(self, work, megabytes, pid, files):
        self.megabytes = megabytes
        self.process = subprocess.Popen(
            [work.program('pagecap'), str(megabytes), str(pid)] + files,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        out, _ = self.process.communicate()
        if kind is None:
            self.left = json.loads(out)['left']
            if self.left > 1.1 * self.megabytes:
                raise Failed('pages in use cannot be dropped: %s' % out)


LIGHTTPD = '''
server.bind = "127.0.0.1"
server.port = %(port)d
server.document-root = "%(dir)s/cgi"
server.upload-dirs = ( "%(dir)s/tmp" )
server.modules = ( "mod_alias", "mod_cgi", "mod_fastcgi", "mod_proxy" )
server.max-fds = 4096
server.max-connections = 1024
server.max-keep-alive-requests = 65535
$HTTP["url"] =~ "^/cgi/" {
	cgi.assign = ( "" => "" )
}
alias.url = ( "/cgi/" => "%(dir)s/cgi/" )
proxy.server = ( "/express/" =>
	(( "host" => "127.0.0.1", "port" => %(express)d )),
	"/go/" => (( "host" => "127.0.0.1", "port" => %(go)d )))
'''
RESPONDER = '''
alias.url += ( "/%(name)s/" => "%(dir)s/cgi/" )
fastcgi.server += ( "/%(name)s/" => ( %(hosts)s ))
'''
HOST = '( "socket" => "%s", "disable-time" => 0 )'


class Lighttpd(Process):
    """One for all."""

    def __init__(self, work):
        self.port, self.express, self.go = (free_port() for _ in range(3))
        values = dict(port=self.port, express=self.express, go=self.go,
                      dir=work.dir, sockets=work.sockets)
        text = LIGHTTPD % values
        for name in FASTCGI + tuple(SHARED):
            text += RESPONDER % dict(values, name=name, hosts=', '.join(
                HOST % work.socket(one) for one in SHARED.get(name, (name,))))
        file = work.write('run/lighttpd.conf', text)
        super().__init__(work, 'lighttpd', [find('lighttpd'), '-D', '-f',
                                            file], ('127.0.0.1', self.port))
