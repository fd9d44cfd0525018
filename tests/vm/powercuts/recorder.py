"""What handlers in a guest did, kept outside of it: see deeds.c."""
import select
import socket
import threading
import time

# Process ids begin anew with each boot.
BOOT = 1000000


class Records:
    """All boots' lines, as history.parse_ledger() and said() read them."""

    def __init__(self):
        self.ledger, self.deliveries = [], []
        self.acted = {}     # by downstream key: the run that did
        self.born = {}      # by run: when its first line came
        self.parents = {}   # of a boot: processes that started handlers


class Recorder:
    """Answers one boot's handlers, each line when it is kept."""

    def __init__(self, records, boot):
        self.records, self.boot = records, boot
        records.parents[boot] = set()
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.over, self.error = False, None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def stop(self):
        """The guest is dead; what it had said before is kept."""
        self.over = True
        self.thread.join(60)
        assert not self.thread.is_alive(), 'the recorder does not end'
        assert self.error is None, self.error

    def work(self):
        self.listener.setblocking(False)
        with self.listener:
            while True:
                over = self.over
                if select.select([self.listener], [], [],
                                 0 if over else 0.05)[0]:
                    self.accept()
                elif over:
                    return

    def accept(self):
        try:
            conn, _ = self.listener.accept()
            with conn:
                self.serve(conn)
        except OSError:
            pass        # the guest was killed
        except Exception as error:      # noqa: see stop()
            self.error = error

    def serve(self, conn):
        conn.settimeout(60)
        text = b''
        while not text.endswith(b'\n'):
            more = conn.recv(4096)
            if not more:
                return      # killed in the middle of a word
            text += more
        kind, _, line = text.decode().rstrip('\n').partition(' ')
        conn.sendall((self.keep(kind, line) + '\n').encode())

    def keep(self, kind, line):
        """The time of a line is when it came here."""
        records = self.records
        if kind == 'find':
            return records.acted.get(line, '-')
        if kind == 'deliveries':
            records.deliveries.append(line)
            return 'ok'
        assert kind == 'ledger', kind
        words = line.split(' ')
        now = str(int(time.monotonic() * 1000))
        words[1:3] = now, records.born.setdefault(words[8], now)
        for i in (9, 10):
            words[i] = str(int(words[i]) + self.boot * BOOT)
        if words[0] == 'acted':
            records.acted[words[6]] = words[8]
        records.parents[self.boot].add(int(words[10]))
        records.ledger.append(' '.join(words))
        return 'ok'
