"""A disk with a volatile write cache, which a guest reaches by NBD.

A write is acknowledged when it is in the cache.  FLUSH makes all of them
durable, FUA that one.  A cut drops a random part of the rest.  The protocol is
NBD's fixed newstyle, as far as qemu uses it.
"""
import collections
import os
import socket
import struct
import threading

SECTOR = 512        # is written whole or not at all
BLOCK = 4096        # ... and this too, but where a cut tears it

# ext4 relies on a disk that writes two of its blocks whole: they have a
# checksum, and ext4 is not mounted if it is wrong.  How the block begins that
# commits a transaction of the journal, and what the superblock has at byte 56.
COMMIT = struct.pack('>II', 0xc03b3998, 2)
SUPER = struct.pack('<H', 0xef53)

MAGIC, OPTION, REPLY = 0x4e42444d41474943, 0x49484156454f5054, 0x3e889045565a9
REQUEST, SIMPLE_REPLY = 0x25609513, 0x67446698
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
OPT_ABORT, OPT_INFO, OPT_GO = 2, 6, 7
REP_ACK, REP_INFO, REP_UNSUPPORTED = 1, 3, 0x80000001
READ, WRITE, DISCONNECT, FLUSH = range(4)
CMD_FUA = 1
EINVAL = 22

# What a cut did: blocks that were not durable; of those the ones that did not
# reach the disk as they were written last; of those the ones whose sectors are
# of several writes.
Loss = collections.namedtuple('Loss', 'unflushed dropped torn')


class Platter:
    """What is durable, and what is only in the cache.

    lies: FLUSH and FUA are acknowledged, and do nothing.
    """

    def __init__(self, content, lies=False):
        self.durable = bytearray(content)
        self.seen = bytearray(content)      # what a read returns
        self.lies = lies
        self.cache = {}     # of a sector: the writes to it, [(number, data)]
        self.writes = self.flushes = 0

    def read(self, offset, size):
        return bytes(self.seen[offset:offset + size])

    def write(self, offset, data, fua=False):
        assert offset % SECTOR == 0 and len(data) % SECTOR == 0
        self.seen[offset:offset + len(data)] = data
        self.writes += 1
        if fua and not self.lies:
            self.durable[offset:offset + len(data)] = data
        for at in range(0, len(data), SECTOR):
            sector = (offset + at) // SECTOR
            if fua and not self.lies:
                self.cache.pop(sector, None)
            else:
                self.cache.setdefault(sector, []).append(
                    (self.writes, data[at:at + SECTOR]))

    def flush(self):
        self.flushes += 1
        if self.lies:
            return
        for sector, writes in self.cache.items():
            self.put(sector, writes[-1][1])
        self.cache.clear()

    def put(self, sector, data):
        self.durable[sector * SECTOR:(sector + 1) * SECTOR] = data

    def cut(self, rng):
        """The power fails: any part of the cache may have been written."""
        blocks = collections.defaultdict(dict)
        for sector, writes in self.cache.items():
            blocks[sector * SECTOR // BLOCK][sector] = writes
        fate = self.fate(rng)
        dropped = torn = 0
        for sectors in blocks.values():
            numbers = [0] + sorted({number for writes in sectors.values()
                                    for number, _ in writes})
            last = fate(numbers)
            if last is None and self.is_whole(sectors):
                last = rng.choice(numbers)
            lost = set()
            for sector, writes in sectors.items():
                mark = rng.choice(numbers) if last is None else last
                kept = [data for number, data in writes if number <= mark]
                if kept:
                    self.put(sector, kept[-1])
                lost.add(len(kept) < len(writes))
            dropped += True in lost
            torn += last is None and len(lost) > 1
        loss = Loss(len(blocks), dropped, torn)
        self.cache.clear()
        self.seen[:] = self.durable
        return loss

    @staticmethod
    def is_whole(sectors):
        return any(data.startswith(COMMIT) or data[56:58] == SUPER
                   for writes in sectors.values() for _, data in writes)

    def fate(self, rng):
        """Draws how cruel this cut is: a function that chooses, of the numbers
        of a block's writes, the last that reached it; None: it is torn."""
        kind = rng.choice(('order', 'nothing', 'some', 'some', 'torn'))
        first = min((writes[0][0] for writes in self.cache.values()),
                    default=0)
        # A disk that lies has much to lose.
        last = (first + self.writes) // 2 if self.lies else self.writes
        moment, chance = rng.randint(first - 1, last), rng.random()

        def draw(numbers):
            if self.lies or kind == 'order':    # it had failed earlier
                return moment
            if kind == 'nothing':
                return 0
            if kind == 'torn' and rng.random() < 0.5:
                return None
            return numbers[-1] if rng.random() < chance else \
                rng.choice(numbers)
        return draw


class Server:
    """Serves a Platter at a unix socket, to one guest after another.

    trip(n): after n writes and flushes from now, and as soon as something is
    not flushed, it stops in the middle of everything, and tripped is set; the
    guest is to be killed then.
    """

    def __init__(self, platter, path):
        self.platter, self.path = platter, path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        self.thread = self.error = self.left = None
        self.tripped = threading.Event()

    def trip(self, n):
        self.left = n

    def start(self):
        """For the next guest."""
        self.left = None
        self.tripped.clear()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def join(self):
        """The guest is dead, and what it had sent is in the cache."""
        self.thread.join(60)
        assert not self.thread.is_alive(), 'the disk has still a guest'
        assert self.error is None, self.error

    def close(self):
        self.listener.close()
        os.unlink(self.path)

    def work(self):
        conn, _ = self.listener.accept()
        with conn, conn.makefile('rb') as stream:
            self.conn, self.stream = conn, stream
            try:
                if self.negotiate():
                    while self.transmit():
                        pass
            except (EOFError, BrokenPipeError, ConnectionResetError):
                pass        # killed
            except Exception as error:      # noqa: raised in join()
                self.error = error

    def get(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def take(self, size):
        data = self.stream.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def put(self, layout, *values):
        self.conn.sendall(struct.pack(layout, *values))

    # --- handshake ---

    def negotiate(self):
        """Whether the guest wants the disk."""
        self.put('>QQH', MAGIC, OPTION, FIXED_NEWSTYLE | NO_ZEROES)
        self.get('>I')
        while True:
            _, option, size = self.get('>QII')
            self.take(size)
            if option in (OPT_INFO, OPT_GO):
                self.put('>QIIIHQH', REPLY, option, REP_INFO, 12, 0,
                         len(self.platter.seen),
                         HAS_FLAGS | SEND_FLUSH | SEND_FUA)
            known = option in (OPT_INFO, OPT_GO, OPT_ABORT)
            self.put('>QIII', REPLY, option,
                     REP_ACK if known else REP_UNSUPPORTED, 0)
            if option in (OPT_GO, OPT_ABORT):
                return option == OPT_GO

    # --- requests ---

    def transmit(self):
        magic, flags, command, cookie, offset, size = self.get('>IHHQQI')
        assert magic == REQUEST, 'no request of NBD: %x' % magic
        platter, error, data = self.platter, 0, b''
        if command in (WRITE, FLUSH) and self.left is not None:
            self.left -= 1
            if self.left < 0 and platter.cache:
                self.tripped.set()
                while self.stream.read(BLOCK):
                    pass
                raise EOFError
        if command == READ:
            data = platter.read(offset, size)
        elif command == WRITE:
            platter.write(offset, self.take(size), bool(flags & CMD_FUA))
        elif command == FLUSH:
            platter.flush()
        elif command == DISCONNECT:
            return False
        else:
            error = EINVAL
        self.conn.sendall(struct.pack('>IIQ', SIMPLE_REPLY, error, cookie) +
                          data)
        return True
