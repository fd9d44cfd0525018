#!/usr/bin/python3 -ISB
"""Writes QUERY_STRING bytes of a known pattern, and a line to the ledger."""
import os
import sys

with open(os.path.join(os.getcwd(), 'ledger'), 'a') as f:
    f.write('run\n')
n = int(os.environ['QUERY_STRING'])
block = bytes(range(256)) * 256
out = sys.stdout.buffer
out.write(b'Content-Type: application/octet-stream\r\n\r\n')
while n > 0:
    out.write(block[:n])
    n -= len(block)
