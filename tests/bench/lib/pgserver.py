"""PostgreSQL: a server of Debian's packages with its default settings, and
pgbench, which says what that server can do."""
import glob
import os
import pwd
import re
import shutil
import subprocess
import tempfile

from programs import Process, processor_us
from work import Failed, Missing, command, wait_until

# All others, durability among them, are the server's defaults.
SETTINGS = '''
listen_addresses = ''
unix_socket_directories = '%s'
'''


def binary(name):
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/' + name))
    if not found:
        raise Missing('no PostgreSQL (%s)' % name)
    return found[-1]


def account():
    """Arguments for a process: postgres refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam('postgres')
    return {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []}


def own_folder(path):
    os.makedirs(path)
    if os.geteuid() == 0:
        user = pwd.getpwnam('postgres')
        os.chown(path, user.pw_uid, user.pw_gid)
    return path


class Server:
    """One for the whole run; each turn gets a database of its own."""

    def __init__(self, work):
        if not os.path.exists(work.module()):
            raise Missing('this build has no PostgreSQL store: no libpq')
        self.work = work
        for name in ('postgres', 'pgbench', 'psql', 'initdb'):
            binary(name)
        # A unix socket's path has at most 107 bytes, and the account of the
        # server must reach it.
        self.sockets = tempfile.mkdtemp(prefix='once-pg-')
        os.chmod(self.sockets, 0o755)
        folder = own_folder(os.path.join(self.sockets, 'socket'))
        self.folder = work.path('run', 'postgres')
        own_folder(self.folder)
        data = os.path.join(self.folder, 'data')
        command([binary('initdb'), '-D', data, '-U', 'postgres', '-A', 'trust',
                 '-E', 'UTF8', '--locale=C.UTF-8'], cwd=self.folder,
                **account())
        with open(os.path.join(data, 'postgresql.conf'), 'a') as f:
            f.write(SETTINGS % folder)
        self.host = folder
        self.process = Process(
            work, 'postgres', [binary('postgres'), '-D', data],
            os.path.join(folder, '.s.PGSQL.5432'), cwd=self.folder,
            **account())
        self.databases = 0
        try:
            wait_until(self.is_ready, 'PostgreSQL is ready')
        except Failed:
            self.end()
            raise

    def is_ready(self):
        return subprocess.run(
            [binary('pg_isready'), '-q'] + self.connect('postgres')[:-1],
            stdin=subprocess.DEVNULL).returncode == 0

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        self.process.process.send_signal(2)     # a fast shutdown
        try:
            self.process.process.wait(60)
        except subprocess.TimeoutExpired:
            pass
        self.process.end()
        shutil.rmtree(self.sockets, ignore_errors=True)
        self.work.remove('run', 'postgres')

    def connect(self, database, host=None):
        return ['-h', host or self.host, '-U', 'postgres', database]

    def uri(self, database):
        return 'postgresql:///%s?host=%s&user=postgres' % (database, self.host)

    def sql(self, text, database='postgres'):
        return command([binary('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1',
                        '-c', text] + self.connect(database)).strip()

    def fresh(self):
        """The name of an empty database; the last one is dropped, and what it
        left to be written is written before anything is measured."""
        if self.databases > 0:
            self.drop('fresh%d' % self.databases)
        self.databases += 1
        name = 'fresh%d' % self.databases
        self.sql('CREATE DATABASE %s TEMPLATE template0' % name)
        self.sql('CHECKPOINT')
        return name

    def exists(self, name):
        return self.sql("SELECT 1 FROM pg_database WHERE datname = '%s'" %
                        name) == '1'

    def drop(self, name):
        self.sql('DROP DATABASE IF EXISTS %s WITH (FORCE)' % name)

    # --- the bound ---

    def bench(self, database, script, clients, seconds, warm, host=None):
        """What load() gives, for transactions of that script; host: the folder
        of another socket."""
        file = self.work.write('run/bound.sql', script)
        argv = [binary('pgbench'), '-n', '-M', 'prepared', '-c', str(clients),
                '-j', '2', '-f', file]
        self.run_bench(argv, database, warm, host)
        before = processor_us()
        result = self.run_bench(argv, database, seconds, host)
        result['cpu'] = (processor_us() - before) / result['all']
        return result

    def run_bench(self, argv, database, seconds, host):
        # It counts whole seconds.
        argv = argv + ['-T', str(max(1, round(seconds)))]
        out = command(argv + self.connect(database, host))
        done = re.search(r'actually processed: (\d+)', out)
        rate = re.search(r'tps = ([\d.]+)', out)
        failed = re.search(r'failed transactions: (\d+)', out)
        if not done or not rate or (failed and failed.group(1) != '0'):
            raise Failed('pgbench: %s' % out)
        latency = re.search(r'latency average = ([\d.]+)', out)
        return {'all': int(done.group(1)), 'rate': float(rate.group(1)),
                'p50': float(latency.group(1))}
