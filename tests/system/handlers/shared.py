"""The database of oncewrap in either store, with the interface of sqlite3: for
handlers that share it, and for the tests."""
import os
import re
import sqlite3
import sys

# Handlers run without the module site.
PACKAGES = '/usr/lib/python3/dist-packages'

# What the functions of the store in PostgreSQL take; a handler inserts the same
# columns into the views of SQLite.
TYPES = {'token': 'text', 'recovery_point': 'text', 'topic': 'text',
         'payload': 'bytea', 'status': 'integer', 'headers': 'text',
         'body': 'bytea'}
VIEW = re.compile(r'INSERT INTO (once_checkpoint|once_outbox|once_response)'
                  r'\(([\w, ]+)\)\s*VALUES \((.*)\)\s*$', re.S)
VALUE = re.compile(r"(?:'[^']*'|[^,'])+")


def connect(database=None):
    """A connection without transactions but those that are begun."""
    database = database or os.environ['ONCE_DATABASE']
    if database.startswith('postgresql:'):
        return Postgres(database)
    return sqlite3.connect(database, timeout=20, isolation_level=None)


def words_of_postgres(text):
    """The same statement for PostgreSQL."""
    view = VIEW.match(text)
    if view:
        names = [name.strip() for name in view.group(2).split(',')]
        values = [value.strip() for value in VALUE.findall(view.group(3))]
        text = 'SELECT %s(%s)' % (view.group(1), ', '.join(
            '%s => %s::%s' % (name, dict(zip(names, values)).get(name, 'NULL'),
                              TYPES[name])
            for name in parameters(view.group(1))))
    text = text.replace('%', '%%').replace('?', '%s')
    text = text.replace('BEGIN IMMEDIATE', 'BEGIN')
    return text.replace('INTEGER PRIMARY KEY', 'bigserial PRIMARY KEY')


def parameters(function):
    return {'once_checkpoint': ('token', 'recovery_point'),
            'once_outbox': ('token', 'topic', 'payload'),
            'once_response': ('token', 'status', 'headers', 'body')}[function]


class Postgres:
    """A connection."""

    def __init__(self, uri):
        if PACKAGES not in sys.path:
            sys.path.append(PACKAGES)
        import psycopg2
        self.psycopg2 = psycopg2
        self.db = psycopg2.connect(uri)
        self.db.autocommit = True

    def execute(self, text, values=()):
        cursor = self.db.cursor()
        try:
            cursor.execute(words_of_postgres(text), [
                self.psycopg2.Binary(v) if isinstance(v, bytes) else v
                for v in values])
        except self.psycopg2.Error as error:
            raise sqlite3.DatabaseError(
                error.diag.message_primary or str(error).strip())
        return Cursor(self, cursor)

    @property
    def in_transaction(self):
        """One that an error has ended can only be rolled back."""
        return self.db.info.transaction_status == \
            self.psycopg2.extensions.TRANSACTION_STATUS_INTRANS

    def close(self):
        self.db.close()


class Cursor:
    """What a statement came to."""

    def __init__(self, connection, cursor):
        self.connection, self.cursor = connection, cursor

    def fetchall(self):
        return [tuple(bytes(v) if isinstance(v, memoryview) else v
                      for v in row) for row in self.cursor.fetchall()]

    def fetchone(self):
        rows = self.fetchall()
        return rows[0] if rows else None

    @property
    def lastrowid(self):
        return self.connection.execute('SELECT lastval()').fetchone()[0]
