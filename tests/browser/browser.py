"""A headless Chromium, by the WebDriver protocol (W3C) and no library."""
import base64
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

import base
import proc
import servers

# The name of an element's id in WebDriver, section 12.
ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'


def axe_file():
    """The script of axe-core, which npm installs into the build directory."""
    folder = os.path.join(base.BUILDDIR, 'axe')
    script = os.path.join(folder, 'node_modules', 'axe-core', 'axe.min.js')
    if not os.path.exists(script):
        subprocess.run([base.need('npm'), 'install', '--prefix', folder,
                        '--no-audit', '--no-fund', 'axe-core@4'], check=True,
                       stdout=subprocess.DEVNULL, timeout=50)
    return script


class Browser:
    """One window.  What leads to a page returns at once: wait_text() and
    wait_form() wait until it is there, whole, and is not the page before."""

    def __init__(self, t, javascript=True, page_cache=True):
        self.t = t
        self.session = None
        self.left = None
        self.url = 'http://127.0.0.1:%d' % servers.free_port()
        driver = base.need('chromedriver')
        self.process = t.popen(
            [driver, '--port=' + self.url.rpartition(':')[2]],
            'chromedriver.log', stdout=open(t.path('chromedriver.out'), 'wb'),
            env=dict(os.environ, HOME=t.dir, TMPDIR=t.dir))
        t.deferred.pop()
        t.defer(self.close)
        base.wait_until(self.ready, 'chromedriver is ready')
        options = {
            'binary': base.need('chromium'),
            'args': ['--headless=new', '--no-sandbox', '--disable-gpu',
                     '--disable-dev-shm-usage', '--disable-breakpad',
                     '--disable-background-networking', '--no-first-run',
                     '--disable-extensions', '--no-proxy-server',
                     '--user-data-dir=' + t.path('profile')]}
        if not page_cache:      # of whole pages, as they were left
            options['args'].append('--disable-features=BackForwardCache')
        if not javascript:
            options['prefs'] = {
                'profile.managed_default_content_settings.javascript': 2}
        self.session = self.call('POST', '/session', {
            'capabilities': {'alwaysMatch': {
                'browserName': 'chrome', 'pageLoadStrategy': 'none',
                'goog:chromeOptions': options}}})['sessionId']

    def call(self, method, path, data=None):
        request = urllib.request.Request(
            self.url + path, method=method,
            data=None if data is None else json.dumps(data).encode(),
            headers={'Content-Type': 'application/json'})
        try:
            with urllib.request.urlopen(
                    request, timeout=base.WAIT * base.SLOW) as reply:
                return json.load(reply)['value']
        except urllib.error.HTTPError as error:
            value = json.load(error)['value']
            raise LookupError('%s: %s' % (
                value['error'], value['message'].split('\n')[0])) from None

    def do(self, method, path, data=None):
        return self.call(method, '/session/%s%s' % (self.session, path), data)

    def ready(self):
        try:
            return self.call('GET', '/status')['ready']
        except OSError:
            return False

    def close(self):
        if self.session:
            self.do('DELETE', '')
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(base.WAIT * base.SLOW)
        # What Chromium leaves behind ends soon, by itself.
        base.wait_until(lambda: not [
            line for line in proc.leftovers() if 'chrom' in line],
            'Chromium is gone')

    # --- pages ---

    def leave(self):
        """What follows leads to another page: each has a root of its own."""
        def root():
            try:
                return self.find('html')
            except LookupError:     # the window is new
                return None
        self.left = base.wait_until(root, 'a page to leave')

    def get(self, url):
        self.leave()
        self.do('POST', '/url', {'url': url})

    def back(self):
        self.leave()
        self.do('POST', '/back', {})

    def reload(self):
        self.leave()
        self.do('POST', '/refresh', {})

    def find(self, css):
        return self.do('POST', '/element', {
            'using': 'css selector', 'value': css})[ELEMENT]

    def text(self, css='body'):
        return self.do('GET', '/element/%s/text' % self.find(css))

    def value(self, css):
        return self.do('GET', '/element/%s/property/value' % self.find(css))

    def click(self, css='button'):
        """A click that leads to a page."""
        self.leave()
        self.do('POST', '/element/%s/click' % self.find(css), {})

    def place(self, css='button'):
        """The middle of an element, in pixels of the window."""
        rect = self.do('GET', '/element/%s/rect' % self.find(css))
        return (int(rect['x'] + rect['width'] / 2),
                int(rect['y'] + rect['height'] / 2))

    def click_at(self, place):
        """A click by the mouse alone: chromedriver looks into no page while
        one is on its way."""
        for kind in ('mousePressed', 'mouseReleased'):
            self.do('POST', '/goog/cdp/execute', {
                'cmd': 'Input.dispatchMouseEvent', 'params': {
                    'type': kind, 'x': place[0], 'y': place[1],
                    'button': 'left', 'clickCount': 1}})

    def type(self, css, text, clear=True):
        element = self.find(css)
        if clear:
            self.do('POST', '/element/%s/clear' % element, {})
        self.do('POST', '/element/%s/value' % element, {'text': text})

    # --- how a page looks, and whether it is accessible ---

    def cdp(self, command, **params):
        """Chromium's own protocol."""
        return self.do('POST', '/goog/cdp/execute',
                       {'cmd': command, 'params': params})

    def look(self, width, scheme, height=900):
        """The width of the window (pixels); light or dark."""
        self.cdp('Emulation.setDeviceMetricsOverride', width=width,
                 height=height, deviceScaleFactor=1, mobile=width < 600)
        self.cdp('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': scheme}])

    def run(self, script, *args):
        return self.do('POST', '/execute/sync',
                       {'script': script, 'args': list(args)})

    def screenshot(self, name):
        """The whole page, as NAME.png in $SCREENSHOTS, if that is set."""
        folder = os.environ.get('SCREENSHOTS')
        if folder:
            data = self.cdp('Page.captureScreenshot', format='png',
                            captureBeyondViewport=True)['data']
            with open(os.path.join(folder, name + '.png'), 'wb') as f:
                f.write(base64.b64decode(data))

    def axe(self):
        """What axe finds: one line for each finding."""
        with open(axe_file()) as f:
            self.run(f.read())
        found = self.do('POST', '/execute/async', {'args': [], 'script': """
            const done = arguments[arguments.length - 1];
            axe.run().then(r => done(r.violations.map(v => v.id + ': ' +
                v.help + ': ' + v.nodes.map(n => n.html).join(' '))),
                e => done(['' + e]));"""})
        return found

    def press(self, key, n=1):
        """A key: Tab, Enter, Space."""
        value = {'Tab': '\ue004', 'Enter': '\ue007', 'Space': ' '}[key]
        for _ in range(n):
            self.do('POST', '/actions', {'actions': [
                {'type': 'key', 'id': 'keys', 'actions': [
                    {'type': 'keyDown', 'value': value},
                    {'type': 'keyUp', 'value': value}]}]})

    def tab_to(self, css):
        """Presses Tab until that element has the focus."""
        for _ in range(60):
            self.press('Tab')
            if self.run('return document.activeElement.matches(arguments[0])',
                        css):
                return
        raise AssertionError('Tab does not lead to %s' % css)

    def cookies(self):
        return {c['name']: c['value'] for c in self.do('GET', '/cookie')}

    def there(self):
        return self.find('html') != self.left and \
            self.run('return document.readyState') == 'complete'

    def wait_page(self, look, what):
        """Until a look at the page that follows finds something."""
        def found():
            try:
                return self.there() and look()
            except LookupError:     # between two pages, or not there
                return None
        return base.wait_until(found, 'a page ' + what)

    def wait_text(self, wanted):
        """Until the page has that text; the whole text."""
        def look():
            text = self.text()
            return text if wanted in text else None
        return self.wait_page(look, 'that says %r' % wanted)

    def wait_form(self):
        """Until the page has a form; its key."""
        return self.wait_page(lambda: self.value('input[name=once_key]'),
                              'with a form')
