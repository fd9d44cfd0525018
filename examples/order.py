#!/usr/bin/python3
"""Takes an order: {"item": "tea", "count": 2} becomes a line in the file that
ORDERS names, else "orders" in the working directory.  Standard library only.
"""
import fcntl
import json
import os
import re
import sys
import time

EX_TEMPFAIL = 75


def answer(status, data):
    text = json.dumps(data)
    sys.stdout.write(f"Status: {status}\r\n"
                     f"Content-Type: application/json\r\n\r\n{text}\n")
    sys.stdout.flush()


def main():
    try:
        order = json.loads(sys.stdin.buffer.read())
        item, count = order["item"], order["count"]
    except Exception:   # RecursionError, for one: JSON may be deep
        return answer("400 Bad Request", {"error": "item and count, please"})
    if (not isinstance(item, str) or not re.fullmatch(r"[\w -]{1,64}", item)
            or type(count) is not int or not 0 < count < 1000000):
        return answer("422 Unprocessable Content",
                      {"error": "item and count, please"})

    # Until the line is written nothing has happened: this exit status says
    # so, and the same key may be sent again.
    try:
        orders = open(os.environ.get("ORDERS", "orders"), "a",
                      encoding="utf-8")
        fcntl.flock(orders, fcntl.LOCK_EX)
    except OSError as e:
        answer("503 Service Unavailable", {"error": "no order book"})
        print(f"orders: {e}", file=sys.stderr)
        return EX_TEMPFAIL

    # From here on an exception ends the program with status 1: the outcome
    # is unknown, and stays so.
    order_id = f"ord_{int(time.time())}_{os.getpid()}"
    with orders:
        print(f"{order_id} item={item} count={count}"
              f" attempt={os.environ.get('ONCE_ATTEMPT', '-')}"
              f" key={os.environ.get('ONCE_KEY', '-')}", file=orders)
        orders.flush()
        os.fsync(orders.fileno())
    return answer("201 Created",
                  {"order": order_id, "item": item, "count": count})


sys.exit(main())
