"""Runs the cases of units.py and hardening.py: this is the guest's program."""
import os
import sys
import time
import traceback

import service
import base
import hardening
import units


# The longest: `sample` leaves them out.
LONG = (units.test_a_data_disk_that_is_mounted_late,
        units.test_a_journal_that_takes_nothing_stops_nothing,
        hardening.test_another_user_s_child_is_found,
        hardening.test_setgid_unit)


def chosen(name, case, filters):
    if filters == ['sample']:
        return case not in LONG
    return not filters or any(f in name for f in filters)


def cases(filters):
    """(name, function) in the order of the files."""
    for module in (units, hardening):
        for name, case in vars(module).items():
            if name.startswith('test_') and chosen(name, case, filters):
                yield name, case


def main():
    with open(os.path.join(service.HERE, 'arguments')) as f:
        slow, *filters = f.read().split()
    # An emulated processor is slow by itself.
    base.SLOW = 2 * float(slow)
    service.setup()
    passed = failed = 0
    for name, case in cases(filters):
        began = time.monotonic()
        try:
            service.write(service.CONF, service.GOOD % '/var/lib/oncewrap')
            case()
        except Exception:       # noqa: the next one may pass
            failed += 1
            print('FAIL vm.%s' % name[5:])
            text = traceback.format_exc() + service.run(
                'journalctl', '-n', '30', '--no-pager', '-o', 'cat',
                '-u', service.SERVICE, '-u', 'oncewrap.socket').stdout
            for line in text.splitlines():
                print('    ' + line)
        else:
            passed += 1
            print('ok vm.%s (%.0f s)' % (name[5:], time.monotonic() - began))
        sys.stdout.flush()
    print('%d and %d' % (passed, failed))


main()
