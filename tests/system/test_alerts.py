"""The alerts and the dashboard of examples/ name metrics that there are."""
import json
import os
import re

import base
from answer import eq, first

ALERTS = os.path.join(base.EXAMPLES, 'alerts.yml')
DASHBOARD = os.path.join(base.EXAMPLES, 'grafana.json')


def families_and_labels(t):
    """{family: {label: values}} of a daemon that has served something."""
    once = t.once(handler=t.sh('status 201'), server={'admin_path': '/once'},
                  routes={'/pay': {}})
    first(once.post('k'), 201)
    found = {}
    for line in once.get('/once/metrics').body.decode().splitlines():
        match = re.fullmatch(r'(oncewrap_\w+)(?:\{(.*)\})? \S+', line)
        if match:
            labels = found.setdefault(match[1], {})
            for name, value in re.findall(r'(\w+)="([^"]*)"', match[2] or ''):
                labels.setdefault(name, set()).add(value)
    return found


def check_names(text, found):
    """How many metrics the text names; each is there, with these labels."""
    named = re.findall(r'(oncewrap_\w+)(?:\{([^}]*)\})?', text)
    for family, labels in named:
        assert family in found, family
        for name, how, value in re.findall(r'(\w+)(=~?|!=)"([^"]*)"', labels):
            for one in value.split('|'):
                assert one in found[family][name], (family, name, one)
    return len(named)


def test_alerts_name_metrics_that_there_are(t):
    with open(ALERTS, encoding='utf-8') as f:
        text = f.read()
    assert check_names(text, families_and_labels(t)) >= 10


def test_the_dashboard_names_metrics_that_there_are(t):
    with open(DASHBOARD, encoding='utf-8') as f:
        panels = json.load(f)['panels']
    eq(len({panel['id'] for panel in panels}), len(panels))
    found = families_and_labels(t)
    for panel in panels:
        for target in panel['targets']:
            assert check_names(target['expr'], found) == 1, target
            family = re.search(r'oncewrap_\w+', target['expr'])[0]
            for label in re.findall(r'by \((\w+)\)', target['expr']):
                assert label in found[family], target
