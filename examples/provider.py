#!/usr/bin/python3
"""A payment provider to try handlers with: local, honest, and moody on demand.

    provider.py [--port N] [--ledger FILE]

prints the address it listens at, a free one on the loopback unless --port says
which.  As providers do, it charges once for each Idempotency-Key, and answers
a key that it knows as it did the first time:

    POST /charges   Idempotency-Key: KEY   {"amount": 4200, ...}
                    201 {"charge": "ch_1", "amount": 4200}
    GET /charges    what was charged: [{"charge", "key", "amount", "asked"}];
                    asked: how often that key came

What the next charges are to be like, one word each:

    POST /moods     fail decline hang lost twice

    fail            503, and nothing is charged
    decline         402, and nothing is charged
    hang            charged; then not a word, until POST /wake
    lost            charged; then the connection is cut
    twice           charged; and the answer is sent twice

Standard library only.
"""
import argparse
import http.server
import json
import os
import threading

MOODS = ("fail", "decline", "hang", "lost", "twice")


class Book:
    """The charges, in memory and line by line in the ledger."""

    def __init__(self, ledger):
        self.lock = threading.Lock()
        self.moods = []
        self.charges = {}       # by key
        self.ledger = ledger

    def mood(self):
        with self.lock:
            return self.moods.pop(0) if self.moods else None

    def charge(self, key, amount):
        """The charge of that key, which is made if there is none; None if
        the key was used for another amount."""
        with self.lock:
            known = self.charges.get(key)
            if known is None:
                known = {"charge": f"ch_{len(self.charges) + 1}", "key": key,
                         "amount": amount, "asked": 0}
                self.charges[key] = known
                self.write(known)
            known["asked"] += 1
            return known if known["amount"] == amount else None

    def write(self, charge):
        if self.ledger is None:
            return
        with open(self.ledger, "a", encoding="utf-8") as f:
            print(f"{charge['charge']} amount={charge['amount']}"
                  f" key={charge['key']}", file=f)
            f.flush()
            os.fsync(f.fileno())


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    book = None
    wake = threading.Event()

    def log_message(self, *args):
        pass

    def answer(self, status, data, times=1):
        text = json.dumps(data).encode() + b"\n"
        for _ in range(times):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def do_GET(self):
        if self.path != "/charges":
            return self.answer(404, {"error": "no such thing"})
        with self.book.lock:
            charges = list(self.book.charges.values())
        self.answer(200, charges)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/charges":
            return self.charge(body)
        if self.path == "/moods":
            return self.set_moods(body.decode().split())
        if self.path == "/wake":
            self.wake.set()
            return self.answer(200, "awake")
        self.answer(404, {"error": "no such thing"})

    def set_moods(self, moods):
        if not all(mood in MOODS for mood in moods):
            return self.answer(400, {"error": "no such mood"})
        self.wake.clear()
        with self.book.lock:
            self.book.moods = moods
        self.answer(200, moods)

    def charge(self, body):
        key = self.headers.get("Idempotency-Key")
        try:
            amount = json.loads(body)["amount"]
        except (ValueError, KeyError, TypeError):
            amount = None
        if not key or type(amount) is not int or amount <= 0:
            return self.answer(400, {"error": "a key and an amount, please"})

        mood = self.book.mood()
        if mood == "fail":
            return self.answer(503, {"error": "try again later"})
        if mood == "decline":
            return self.answer(402, {"error": "card declined"})
        known = self.book.charge(key, amount)
        if known is None:
            return self.answer(422, {"error": "key used for another amount"})
        if mood == "hang":
            self.wake.wait()
        if mood in ("hang", "lost"):
            self.close_connection = True
            return None
        return self.answer(201, {"charge": known["charge"],
                                 "amount": known["amount"]},
                           times=2 if mood == "twice" else 1)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A handler that was killed, or has lost its patience."""


def main():
    parser = argparse.ArgumentParser(
        description="a payment provider to try handlers with")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ledger")
    options = parser.parse_args()
    Provider.book = Book(options.ledger)
    server = Server(("127.0.0.1", options.port), Provider)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


main()
