"""What `make install` installs, and what `make uninstall` leaves."""
import os

import base
from answer import eq

EXAMPLES = 'usr/share/doc/oncewrap/examples'
UNITS = 'usr/lib/systemd/system/'


def make(t, target):
    run = t.run(['make', '-C', base.BUILDDIR, target, 'prefix=/usr',
                 'DESTDIR=' + t.path('root')])
    eq(run.returncode, 0, run.stderr)


def files(t, folder):
    """{name: may it be executed} of the files below the folder."""
    return {os.path.relpath(os.path.join(at, name), folder):
            os.access(os.path.join(at, name), os.X_OK)
            for at, _, names in os.walk(folder) for name in names
            if '__pycache__' not in at}


def test_what_is_installed_and_taken_away_again(t):
    if not os.path.exists(os.path.join(base.BUILDDIR, 'Makefile')):
        raise base.Skip('needs the folder of a build')
    make(t, 'install-data')
    found = files(t, t.path('root'))
    for name in (UNITS + 'oncewrap.service', UNITS + 'oncewrap.socket',
                 'usr/lib/sysusers.d/oncewrap.conf',
                 'usr/lib/tmpfiles.d/oncewrap.conf',
                 'usr/share/oncewrap/once-prepend.php',
                 'usr/share/bash-completion/completions/oncectl',
                 'usr/share/man/man8/oncewrap.8'):
        assert found.get(name) is False, name
    # Enabled is nothing.
    eq([name for name in found if '.wants' in name or '/etc/' in name], [])
    eq(files(t, t.path('root', EXAMPLES)), files(t, base.EXAMPLES))
    unit = t.read('root/' + UNITS + 'oncewrap.service').decode()
    assert '\nUser=oncewrap\nGroup=oncewrap\n' in unit, unit
    assert 'sbin/oncewrap -f /etc/oncewrap.conf -s fd:3\n' in unit, unit
    for verb, name in (('systemd-sysusers', 'sysusers.d'),
                       ('systemd-tmpfiles', 'tmpfiles.d')):
        with open(t.path('root/usr/lib', name, 'oncewrap.conf'),
                  encoding='utf-8') as f:
            lines = [line for line in f if line[0] not in '#\n']
        assert lines and all(' oncewrap ' in line or '/oncewrap ' in line
                             for line in lines), (verb, lines)
    # No programs were installed, which are built anew if a source changed.
    for folder in ('bin', 'sbin', 'lib/oncewrap'):
        os.makedirs(t.path('root/usr', folder), exist_ok=True)
    make(t, 'uninstall')
    eq(files(t, t.path('root')), {})
