"""Hosts: network namespaces, each with its own machine-id, boot and folder,
and with a cable to the database that can be pulled."""
import os
import subprocess
import uuid

import base
from lib.postgres import Proxy


def ip(*arguments, inside=None):
    command = ['ip', *arguments]
    if inside:
        command = ['nsenter', '-t', str(inside), '-n', *command]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, '%s: %s' % (' '.join(command), run.stderr)


class Host:
    """A host of a world; it lives as long as the process that holds it."""

    def __init__(self, w, name):
        base.need_root()
        base.need('ip')
        self.w, self.name = w, name
        t = w.t
        self.machine = t.write('machine-' + name, uuid.uuid4().hex + '\n')
        self.boot = t.write('boot-' + name, '%s\n' % uuid.uuid4())
        self.holder = t.popen(
            ['unshare', '-n', '-m', '--propagation', 'private', 'sh', '-c',
             'mount --bind %s /etc/machine-id && '
             'mount --bind %s /proc/sys/kernel/random/boot_id && '
             'echo ready && exec sleep infinity' % (self.machine, self.boot)],
            stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b'ready\n'
        pid = self.holder.pid
        self.cable = 'once%d' % pid
        net = '10.%d.%d.' % (pid >> 14 & 255, pid >> 6 & 255)
        low = (pid & 63) * 4
        ip('link', 'add', self.cable, 'type', 'veth', 'peer', 'name', 'eth0',
           'netns', str(pid))
        address = net + str(low + 1)
        ip('addr', 'add', address + '/30', 'dev', self.cable)
        ip('addr', 'add', net + str(low + 2) + '/30', 'dev', 'eth0',
           inside=pid)
        for device in ('lo', 'eth0'):
            ip('link', 'set', device, 'up', inside=pid)
        self.join()
        self.proxy = Proxy(w.primary, address)
        t.defer(self.proxy.close)

    def cut_off(self):
        """What is sent is lost, both ways, and nobody is told."""
        ip('link', 'set', self.cable, 'down')

    def join(self):
        ip('link', 'set', self.cable, 'up')

    def new_boot(self):
        with open(self.boot, 'w') as f:
            f.write('%s\n' % uuid.uuid4())

    def daemon(self, **kw):
        return self.w.host(self.name, database=self.proxy.uri(), prefix=[
            'nsenter', '-t', str(self.holder.pid), '-n', '-m', '--'], **kw)

    def power_off(self, once):
        """Nothing of it runs on."""
        for pid in once.handlers():
            os.kill(pid, 9)
        once.kill()
