"""What one case has at hand: a folder, handlers, gates, daemons, servers."""
import os
import re
import select
import subprocess
import time

import base
import once as once_module
import servers as servers_module
from base import wait_until

# What every shell handler can call.  D is the case's folder.
PRELUDE = r'''#!/bin/sh
D='%(dir)s'
# One line a run: what the key's history must agree with.
ledger() { echo "$ONCE_ATTEMPT $*" >> "$D/ledger"; }
# Says that it is there, and waits to be let through.
gate() { echo "$$" > "$D/$1.here"; read -r _ < "$D/$1.open"; }
status() { printf 'Status: %%s\r\nContent-Type: text/plain\r\n\r\n' "$*"; }
'''

# See Case.run().
NO_SYSLOG = re.compile(rb'oncectl: the log has no line of this: syslog: '
                       rb'No such file or directory\n')


class Gate:
    """Holds handlers at a point until the test lets them through.

    Both ends are FIFOs that the test keeps open, so a handler waits nowhere
    but in its read, and a test that ends releases all.
    """

    def __init__(self, t, name):
        self.name = name
        self.held = []
        paths = [os.path.join(t.dir, name + end) for end in ('.here', '.open')]
        for path in paths:
            os.mkfifo(path)
            os.chmod(path, 0o666)
        self.here, self.way = (os.open(p, os.O_RDWR | os.O_NONBLOCK |
                                       os.O_CLOEXEC) for p in paths)
        self.rest = b''
        t.defer(self.close)

    def wait(self, seconds=base.WAIT):
        """The process id of the next handler that arrives."""
        until = time.monotonic() + seconds * base.SLOW
        while b'\n' not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.here], [], [], left)[0]:
                raise AssertionError('no handler came to gate %s' % self.name)
            self.rest += os.read(self.here, 4096)
        line, self.rest = self.rest.split(b'\n', 1)
        return int(line)

    def came(self):
        """Whether a handler has arrived that wait() has not returned yet."""
        return b'\n' in self.rest or bool(
            select.select([self.here], [], [], 0)[0])

    def open(self, n=1):
        """Lets n handlers through, those to come included."""
        os.write(self.way, b'\n' * n)

    def shut(self):
        """Forgets who came, and who was to be let through."""
        for fd in (self.here, self.way):
            if select.select([fd], [], [], 0)[0]:
                os.read(fd, 65536)
        self.rest = b''

    def close(self):
        for fd in (self.here, self.way):
            if fd >= 0:
                os.close(fd)
        self.here = self.way = -1


class Case:
    def __init__(self, name, directory, handlers):
        self.name = name
        self.dir = directory
        self.handlers = handlers
        self.deferred = []
        self.logs = []
        self.counter = 0
        self.postgres = None    # a server of its own
        self.stores = set()     # that init() has made

    # --- the folder ---

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, content='', mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        with open(path, 'wb') as f:
            f.write(content)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(self.path(name), 'rb') as f:
            return f.read()

    def exists(self, name):
        return os.path.exists(self.path(name))

    def ledger(self):
        """The lines that handlers wrote, one a run."""
        try:
            return self.read('ledger').decode().splitlines()
        except FileNotFoundError:
            return []

    def wait_file(self, name):
        wait_until(lambda: self.exists(name), 'file %s' % name)
        return self.path(name)

    def init(self, uri, env):
        """Makes the store in a PostgreSQL database, which a daemon does not;
        once for each URI."""
        if uri not in self.stores:
            conf = self.write('init.conf', '[server]\ndatabase = %s\n'
                              'durability = normal\n' % uri)
            run = self.run([base.ONCECTL, '-f', conf, 'init'],
                           env={name: value for name, value in env.items()
                                if name != 'ONCEWRAP_FAULT'})
            assert run.returncode == 0, run
            self.stores.add(uri)

    def database(self, name):
        """A new database: a file, or in the server that the run has."""
        if base.POSTGRES is None:
            return self.path(name + '.db')
        if self.postgres:
            return self.postgres.database()
        uri = base.POSTGRES.database()
        self.defer(lambda: base.POSTGRES.drop(uri))
        return uri

    # --- handlers ---

    def sh(self, body, name=None):
        """A handler in shell, with ledger, gate and status at hand."""
        self.counter += 1
        name = name or 'handler%d' % self.counter
        return self.write(name, PRELUDE % {'dir': self.dir} + body + '\n',
                          0o755)

    def py(self, body, name=None):
        """A handler in Python; D is the folder, out() writes bytes, and
        shared.py can be imported."""
        self.counter += 1
        name = name or 'handler%d.py' % self.counter
        return self.write(
            name, '#!/usr/bin/python3 -ISB\nimport os, sys\nD = %r\n'
            'sys.path.insert(0, %r)\n'
            'def ledger():\n'
            '    with open(D + "/ledger", "a") as f:\n'
            '        f.write(os.environ.get("ONCE_ATTEMPT", "") + "\\n")\n'
            'def out(b):\n'
            '    sys.stdout.buffer.write(b); sys.stdout.buffer.flush()\n'
            % (self.dir, self.handlers) + body + '\n', 0o755)

    def program(self, name):
        """A handler from the folder handlers, built if it is in C."""
        path = os.path.join(self.handlers, name)
        assert os.access(path, os.X_OK), path
        return path

    def gate(self, name='gate'):
        return Gate(self, name)

    # --- programs ---

    def once(self, *args, **kw):
        """Starts an oncewrap; see once.Once."""
        return once_module.Once(self, *args, **kw)

    def server(self, kind, *args, **kw):
        """Starts a web server; see servers."""
        return servers_module.start(self, kind, *args, **kw)

    def popen(self, argv, log=None, **kw):
        """A process of this case; killed at its end if it still runs."""
        if log:
            path = self.path(log)
            self.logs.append((log, path))
            with open(path, 'ab') as f:
                process = subprocess.Popen(argv, stderr=f, **kw)
        else:
            process = subprocess.Popen(argv, **kw)
        self.defer(lambda: base.end(process))
        return process

    def run(self, argv, input=None, env=None, whole=False, **kw):
        """Runs a program to its end; .returncode .stdout .stderr as bytes.
        whole: with what oncectl says where no syslog runs."""
        run = subprocess.run(argv, input=input, env=env, capture_output=True,
                             timeout=base.WAIT * base.SLOW, **kw)
        if not whole:
            run.stderr = NO_SYSLOG.sub(b'', run.stderr)
        return run

    # --- the end ---

    def defer(self, function):
        """Calls it at the end, last come first served."""
        self.deferred.append(function)

    def cleanup(self, failed):
        errors = []
        while self.deferred:
            function = self.deferred.pop()
            try:
                function()
            except Exception as error:        # noqa: the rest must be undone
                errors.append(str(error) or repr(error))
        return errors

    def evidence(self):
        """[(label, text)] to print with a failure."""
        out = []
        for label, path in self.logs:
            try:
                with open(path, 'rb') as f:
                    text = f.read()
            except OSError:
                continue
            if len(text) > 6000:
                text = b'[...]\n' + text[-6000:]
            if text:
                out.append((label, text.decode('utf-8', 'backslashreplace')))
        ledger = self.ledger()
        if ledger:
            out.append(('ledger', '\n'.join(ledger[-20:])))
        return out
