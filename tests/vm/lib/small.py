"""Guests of qemu that boot in seconds: a Debian kernel, busybox and our
programs in an initramfs.

Kernel and busybox are taken from Debian's packages, without installing them.
The processor is emulated, for many machines that run tests are guests
themselves, and a /dev/kvm that is there need not work.  VM_ACCEL=kvm is faster
where it does.
"""
import fcntl
import os
import re
import shutil
import socket
import stat
import subprocess

import base

KERNEL = 'linux-image-cloud-amd64'
MODULES = ('virtio_pci', 'virtio_blk', 'virtio_net')
APPLETS = ('sh', 'mount', 'umount', 'insmod', 'ip', 'sed', 'cat', 'mkdir',
           'pidof', 'poweroff', 'date', 'sleep')


def need():
    """Raises base.Skip where no such guest can be made."""
    for program in ('qemu-system-x86_64', 'mke2fs', 'debugfs', 'apt-get',
                    'dpkg-deb'):
        base.need(program)
    if os.uname().machine != 'x86_64':
        raise base.Skip('needs amd64')


def output(*argv, **kw):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **kw)
    assert done.returncode == 0, '%s: %s' % (' '.join(argv), done.stdout)
    return done.stdout


def download(folder):
    kernel = re.search(r'Depends: (linux-image-\S+)',
                       output('apt-cache', 'depends', KERNEL)).group(1)
    output('apt-get', '-q', 'download', kernel, 'busybox-static', cwd=folder)


def packages(folder):
    """Unpacks kernel and busybox there, once; they stay for later runs."""
    with open(folder + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(folder, 'done')
        if not os.path.exists(done):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            unpack(folder)
            with open(done, 'w'):
                pass
    return folder


def unpack(folder):
    try:
        download(folder)
    except AssertionError:
        # Old lists name packages that are no longer there.
        output('apt-get', '-q', 'update')
        download(folder)
    for file in os.listdir(folder):
        if file.endswith('.deb'):
            output('dpkg-deb', '-x', file, '.', cwd=folder)
            os.unlink(os.path.join(folder, file))


def find(folder, name):
    for path, _, files in os.walk(folder):
        for file in files:
            if re.fullmatch(name, file):
                return os.path.join(path, file)
    raise AssertionError('no %s in %s' % (name, folder))


def with_needed(folder, names, found):
    """Modules and what they need, in the order in which they are loaded."""
    for name in names:
        path = find(folder, name.replace('_', '[-_]') + r'\.ko')
        with open(path, 'rb') as f:
            needs = re.search(rb'\0depends=([^\0]*)\0', f.read()).group(1)
        with_needed(folder, [n for n in needs.decode().split(',') if n], found)
        if path not in found:
            found.append(path)
    return found


def libraries(program):
    """What ldd says that it loads; nothing of a static one."""
    said = subprocess.run(['ldd', program], capture_output=True, text=True)
    return set(re.findall(r'(/\S+) \(0x', said.stdout))


class Initramfs:
    """Files as an archive of cpio, format newc."""

    def __init__(self):
        self.data, self.inode, self.folders = [], 0, set()

    def add(self, name, mode, content=b''):
        parent = os.path.dirname(name)
        if parent and parent not in self.folders:
            self.folders.add(parent)
            self.add(parent, stat.S_IFDIR | 0o755)
        self.inode += 1
        name = name.encode() + b'\0'
        head = '070701' + ''.join('%08X' % n for n in (
            self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name),
            0))
        for part in (head.encode() + name, content):
            self.data += [part, b'\0' * (-len(part) % 4)]

    def copy(self, path, name=None, mode=0o755):
        with open(path, 'rb') as f:
            self.add((name or path).lstrip('/'), stat.S_IFREG | mode, f.read())

    def folder(self, name):
        self.folders.add(name)
        self.add(name, stat.S_IFDIR | 0o755)

    def write(self, path):
        self.add('TRAILER!!!', 0)
        with open(path, 'wb') as f:
            f.write(b''.join(self.data))


class Image:
    """Kernel and initramfs in a folder: programs go to /bin, files are
    {name: path}, and init is the first process, a script of sh.  It finds the
    modules, in their order, in /modules."""

    def __init__(self, folder, build, init, programs, files):
        parts = packages(os.path.join(build, 'vm-small'))
        self.kernel = find(parts, 'vmlinuz-.*')
        self.initrd = os.path.join(folder, 'initrd')
        ram = Initramfs()
        for name in ('proc', 'sys', 'dev', 'data', 'run', 'tmp', 'modules'):
            ram.folder(name)
        ram.copy(find(os.path.join(parts, 'bin'), 'busybox'), 'bin/busybox')
        for name in APPLETS:
            ram.add('bin/' + name, stat.S_IFLNK | 0o777, b'busybox')
        for i, path in enumerate(with_needed(parts, MODULES, [])):
            ram.copy(path, 'modules/%02d' % i)
        needed = set()
        for program in programs:
            stripped = os.path.join(folder, os.path.basename(program))
            output('strip', '-o', stripped, program)
            ram.copy(stripped, 'bin/' + os.path.basename(program))
            needed |= libraries(program)
        for path in sorted(needed):
            ram.copy(path)
        for name, path in files.items():
            ram.copy(path, name, 0o644)
        ram.copy(init, 'init')
        ram.write(self.initrd)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Guest:
    """One boot of an image; ends with kill(), or by itself.

    disk is the socket of an NBD server; clock is the date of its clock at the
    boot; words are for /proc/cmdline.  The port 9000 of the guest is
    self.port here.  What it prints is appended to console.
    """

    def __init__(self, t, image, disk, clock, words, console):
        self.port = free_port()
        self.console, self.begun = console, 0
        if os.path.exists(console):
            self.begun = os.path.getsize(console)
        with open(console, 'ab') as f:
            self.process = t.popen([
                'qemu-system-x86_64', '-accel',
                os.environ.get('VM_ACCEL') or 'tcg,thread=multi',
                '-cpu', 'max', '-smp', '2', '-m', '320', '-nodefaults',
                '-no-user-config', '-display', 'none', '-no-reboot',
                '-kernel', image.kernel, '-initrd', image.initrd, '-append',
                'console=ttyS0 panic=-1 no_timer_check ' + words,
                '-rtc', 'base=' + clock,
                '-blockdev', 'driver=nbd,node-name=d,server.type=unix,'
                'server.path=' + disk, '-device', 'virtio-blk-pci,drive=d',
                '-netdev', 'user,id=n,hostfwd=tcp:127.0.0.1:%d-:9000' %
                self.port, '-device', 'virtio-net-pci,netdev=n,romfile=',
                '-serial', 'stdio'], 'qemu.log', stdin=subprocess.PIPE,
                stdout=f)

    def said(self):
        """What it has printed in this boot."""
        with open(self.console, 'rb') as f:
            f.seek(self.begun)
            return f.read().decode('utf-8', 'replace')

    def wait_for(self, words, seconds=60):
        def there():
            if words in self.said():
                return True
            assert self.process.poll() is None, 'the guest has ended'
            return False
        base.wait_until(there, '%s says: %s' % (self.console, words), seconds)

    def tell(self, line):
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ends(self, seconds=60):
        self.process.wait(seconds * base.SLOW)
