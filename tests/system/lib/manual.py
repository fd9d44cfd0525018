"""The manual pages: their literal blocks, which tests run."""
import os
import re

import base


def page(name):
    with open(os.path.join(base.TOP, 'src', name)) as f:
        return f.read().replace('\\(dq', '"').replace('\\e', '\\')


def literals(name):
    return re.findall(r'^\.Bd -literal[^\n]*\n(.*?)^\.Ed', page(name),
                      re.S | re.M)


def literal(name, word):
    """The one block with that text."""
    found, = [b for b in literals(name) if word in b]
    return found
