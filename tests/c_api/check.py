#!/usr/bin/env python3
"""check.py HEADER PAGE NM LIBRARY: whether the reference of the C interface has all that the library offers and the header says."""
import html.parser
import pathlib
import re
import subprocess
import sys

header, page, nm, library = sys.argv[1:]
header = pathlib.Path(header).read_text(encoding='utf-8')


class Page(html.parser.HTMLParser):
    """The page's text, its anchors and where its links lead; and that what is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.text, self.ids, self.links, self.open = '', [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], f'these are not closed: {self.open}'

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if 'id' in attributes:
            self.ids.append(attributes['id'])
        if 'href' in attributes:
            self.links.append(attributes['href'])
        if tag not in ('html', 'meta', 'li'):  # whose ends may be left out
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f'{tag} is closed, but not open'

    def handle_data(self, data):
        self.text += data


page = Page(pathlib.Path(page).read_text(encoding='utf-8'))
assert len(page.ids) == len(set(page.ids)), 'an anchor is there twice'
broken = [link for link in page.links if not link.startswith('#') or link[1:] not in page.ids]
assert not broken, f'links lead nowhere: {broken}'

symbols = subprocess.run([nm, '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
functions = set(re.findall(r'\binlay_\w+', symbols))
assert len(functions) >= 20, f'the library has few functions: {functions}'
assert not functions - set(page.ids), f'the page lacks {functions - set(page.ids)}'

# Each comment is there as a whole, apart from line breaks and the marks of code, and so is each line of a declaration.
plain = ' '.join(page.text.split())
bare = re.sub(r'\s*\n \* ', ' ', header)
for comment in re.findall(r'/\*(.*?)\*/', bare, re.DOTALL):
    if '__cplusplus' in comment or comment.strip() in ('extern "C"', 'INLAY_GEMMA_LIKE_INLAY_C_H_'):
        continue
    words = ' '.join(comment.split())
    assert words in plain or words.replace('`', '') in plain, f'the page lacks the comment: {words}'
for line in re.sub(r'/\*.*?\*/', '', header, flags=re.DOTALL).split('\n'):
    line = ' '.join(line.split())
    if line and not line.startswith('#') and line not in ('extern "C" {', '}'):
        assert line in plain, f'the page lacks: {line}'

# Every function has a description, its own or that of its group.
undescribed = re.findall(r'\n\n(?!typedef struct|/\*|#|extern|}|\n)[^\n]*', header)
assert not undescribed, f'without a comment: {undescribed}'
print(f'{len(functions)} functions, {len(page.ids)} anchors, {len(page.links)} links')
