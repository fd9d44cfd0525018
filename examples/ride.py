#!/usr/bin/python3
"""Orders a ride: {"to": "airport", "amount": 4200}.

Three phases, each of them one transaction in which the rides and the record of
the request change together.  Whatever dies between two of them, the next
attempt goes on where the last one was:

    started         the ride is written down        -> ride_created
    ride_created    the card is charged             -> charged
    charged         the receipt is on its way, and the answer given

The charge itself is at the provider's, where no transaction of ours reaches.
It is sent with ONCE_DOWNSTREAM_KEY, the same at every attempt: asked again,
the provider says what it said the first time.

Needs share_database = yes and on_crash = resume; see oncewrap-handler(7).
PROVIDER names the payment provider.  Standard library only.
"""
import contextlib
import json
import os
import sqlite3
import sys
import traceback
import urllib.error
import urllib.request

EX_TEMPFAIL = 75

TOKEN = os.environ["ONCE_TOKEN"]
RIDE = os.environ["ONCE_DOWNSTREAM_KEY"]
PROVIDER = os.environ.get("PROVIDER", "http://127.0.0.1:8402")
PATIENCE = float(os.environ.get("PROVIDER_TIMEOUT", "10"))


class TryAgain(Exception):
    """Nothing is lost: the next attempt goes on from here."""


@contextlib.contextmanager
def transaction(db):
    """All of it or nothing.  IMMEDIATE waits for the lock at its beginning:
    keep it short, there is one writer at a time."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def checkpoint(db, point):
    """Comes first in its transaction: it fails if the lease is lost."""
    db.execute("INSERT INTO once_checkpoint(token, recovery_point)"
               " VALUES (?, ?)", (TOKEN, point))


def respond(db, status, data):
    db.execute("INSERT INTO once_response(token, status, headers, body)"
               " VALUES (?, ?, 'Content-Type: application/json', ?)",
               (TOKEN, status, json.dumps(data) + "\n"))


def create_ride(db, order):
    with transaction(db):
        checkpoint(db, "ride_created")
        db.execute("CREATE TABLE IF NOT EXISTS ride(id TEXT PRIMARY KEY,"
                   " rider TEXT, destination TEXT, amount INTEGER,"
                   " charge TEXT)")
        # Were it done twice, the second time would fail.
        db.execute("INSERT INTO ride(id, rider, destination, amount)"
                   " VALUES (?, ?, ?, ?)",
                   (RIDE, os.environ["ONCE_SCOPE"], order["to"],
                    order["amount"]))
        pause("creating")


def ask_provider(amount):
    """(status, what it says); no transaction is open meanwhile."""
    request = urllib.request.Request(
        PROVIDER + "/charges", json.dumps({"amount": amount}).encode(),
        {"Content-Type": "application/json", "Idempotency-Key": RIDE})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, None
    except (OSError, ValueError) as error:
        # It may have been charged.  The next attempt asks again.
        raise TryAgain(f"provider: {error}")


def charge(db):
    """False: the card was declined, and that is the answer."""
    amount, = db.execute("SELECT amount FROM ride WHERE id = ?",
                         (RIDE,)).fetchone()
    status, said = ask_provider(amount)
    pause("charging")
    if status == 402:
        with transaction(db):
            respond(db, 402, {"error": "card declined"})
        return False
    if status != 201:
        raise TryAgain(f"provider: status {status}")
    with transaction(db):
        checkpoint(db, "charged")
        db.execute("UPDATE ride SET charge = ? WHERE id = ?",
                   (said["charge"], RIDE))
        pause("recording")
    return True


def finish(db):
    """The receipt and the answer: both, or neither."""
    to, amount, charge = db.execute(
        "SELECT destination, amount, charge FROM ride WHERE id = ?",
        (RIDE,)).fetchone()
    with transaction(db):
        db.execute("INSERT INTO once_outbox(token, topic, payload)"
                   " VALUES (?, 'receipt', ?)",
                   (TOKEN, json.dumps({"ride": RIDE, "amount": amount})))
        respond(db, 201, {"ride": RIDE, "to": to, "amount": amount,
                          "charge": charge})
        pause("answering")


def order_ride(order):
    db = sqlite3.connect(os.environ["ONCE_DATABASE"], timeout=10,
                         isolation_level=None)
    point = os.environ["ONCE_RECOVERY_POINT"]
    pause(point)
    if point == "started":
        create_ride(db, order)
        point = "ride_created"
        pause(point)
    if point == "ride_created":
        if not charge(db):
            return
        point = "charged"
        pause(point)
    finish(db)
    pause("answered")


def pause(where):
    """For demonstrations: {"test": "charged"} waits there in the first
    attempt, if these two FIFOs are there."""
    if (order.get("test") == where and os.environ["ONCE_ATTEMPT"] == "1"
            and os.path.exists("gate.here")):
        with open("gate.here", "w", encoding="ascii") as here:
            print(os.getpid(), file=here)
        with open("gate.open", encoding="ascii") as way:
            way.readline()


def answer(status, data):
    """As any CGI program; after a once_response it is not read."""
    print(f"Status: {status}\r\nContent-Type: application/json\r\n\r\n"
          + json.dumps(data))


try:
    order = json.load(sys.stdin)
    good = (isinstance(order["to"], str) and type(order["amount"]) is int
            and 0 < order["amount"] < 1000000)
except Exception:
    good = False
if not good:
    answer("400 Bad Request", {"error": "to and amount, please"})
    sys.exit(0)
try:
    order_ride(order)
except TryAgain as why:
    print(why, file=sys.stderr)
    answer("503 Service Unavailable", {"error": "try again later"})
    sys.exit(EX_TEMPFAIL)
except Exception:
    # Whatever went wrong: what is not recorded has not happened.
    traceback.print_exc()
    sys.exit(EX_TEMPFAIL)
