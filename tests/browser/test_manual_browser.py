"""The manual as HTML, as a browser shows it: it fits, and axe finds nothing."""
import os

import base
from browser import Browser
from test_page_browser import look_at

PAGES = {'index': 'A payment:', 'oncewrap.8': 'FastCGI responder',
         'oncewrap.conf.5': 'share_database', 'oncectl.1': 'forget',
         'oncewrap-handler.7': 'ONCE_DOWNSTREAM_KEY'}


def test_each_page_in_each_way(t):
    out = t.path('html')
    run = t.run([os.path.join(base.TOP, 'src', 'manual', 'html'), base.TOP,
                 out, '1'])
    assert run.returncode == 0, run.stderr
    browser = Browser(t)
    for name, text in PAGES.items():
        look_at(browser, 'manual-' + name, 'file://%s/%s.html' % (out, name),
                text)
