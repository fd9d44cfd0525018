"""The operator's page, as a program reads it."""
import html.parser
import re
import urllib.parse

VOID = {'meta', 'input', 'rect', 'br'}


class Page(html.parser.HTMLParser):
    """The tags, links, forms and texts of a page that is well formed."""

    def __init__(self, answer):
        super().__init__(convert_charrefs=True)
        self.tags, self.links, self.forms, self.texts = [], [], [], []
        self.labels, self.ids, self.open = [], [], []
        self.keys, self.in_key = [], False
        self.area = None
        text = answer.body.decode()     # it is UTF-8
        assert not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f]', text), text
        self.feed(text)
        self.close()
        assert self.open == [], 'not closed: %s' % self.open
        self.text = ' '.join(' '.join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        attr = dict(attrs)
        assert len(attr) == len(attrs), 'twice: %s' % attrs
        self.tags.append((tag, tuple(n for n, _ in attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if 'id' in attr:
            assert attr['id'] not in self.ids, 'id %s twice' % attr['id']
            self.ids.append(attr['id'])
        if tag == 'a':
            self.links.append(attr['href'])
            self.in_key = attr['href'].startswith('key?')
        if tag == 'form':
            self.forms.append((attr['method'], attr['action'], {}))
        if tag in ('input', 'button') and attr.get('name'):
            values = self.forms[-1][2].setdefault(attr['name'], [])
            values.append(attr.get('value', ''))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, \
            '</%s> in %s' % (tag, self.open)
        self.open.pop()
        if tag == 'a':
            self.in_key = False

    def handle_data(self, data):
        if self.in_key:
            self.keys.append(data)
        if self.open and self.open[-1] != 'style':
            self.texts.append(data)

    @property
    def acts(self):
        """What the page offers to do."""
        return [do for method, action, fields in self.forms
                if action == 'act' and method == 'get'
                for do in fields.get('do', [])]

    @property
    def next(self):
        """Where its lists go on."""
        return [link for link in self.links if '&next=' in link]

    def id_of(self, kind):
        """The number in the first link to a key, or an effect."""
        for link in self.links:
            found = re.match(kind + r'\?id=(\d+)$', link)
            if found:
                return int(found.group(1))
        raise AssertionError('no link to %s: %s' % (kind, self.links))


def form_of(page):
    """The fields of the form that changes something."""
    (fields,) = [f for method, _, f in page.forms if method == 'post']
    return {name: value for name, (value,) in fields.items()}


def encode(fields):
    return urllib.parse.urlencode(fields).encode()
