"""Databases as the first release wrote them."""
import os
import sqlite3

import base

TABLES = ('once_key', 'once_body', 'once_recipe', 'once_meta', 'once_clock')


def make(database):
    """Puts a version 1 in the place of that database, with its content."""
    with open(os.path.join(base.TOP, 'sql', 'schema.sql')) as f:
        schema = f.read()
    old = database + '.v1'
    db = sqlite3.connect(old)
    db.executescript('PRAGMA journal_mode = WAL; BEGIN;' + schema + '''
        PRAGMA user_version = 1;
        COMMIT;''')
    db.execute('ATTACH ? AS new', (database,))
    for table in TABLES:
        names = ', '.join(row[1] for row in db.execute(
            'PRAGMA main.table_info(%s)' % table))
        db.execute('INSERT INTO main.%s(%s) SELECT %s FROM new.%s' % (
            table, names, names, table))
    db.execute('''INSERT INTO main.once_body(key_id, body)
        SELECT id / 65536, body FROM new.once_piece''')
    db.execute("UPDATE main.once_key SET on_crash = 'unknown'")
    application_id, = db.execute('PRAGMA new.application_id').fetchone()
    db.commit()
    db.execute('PRAGMA main.application_id = %d' % application_id)
    db.close()
    for suffix in ('-wal', '-shm'):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    os.chmod(old, 0o600)
    os.rename(old, database)
