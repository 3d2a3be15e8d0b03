#!/usr/bin/env python3
"""Writes unicode_text.inc: which code points Python prints as they are, and how it changes their case.

    python3 io/template/generate_unicode_text.py > io/template/unicode_text.inc

The tables are read off Python's own str methods, as templates expect those.
"""
import sys
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def rows(name, type_, values):
    print('constexpr %s %s[] = {' % (type_, name))
    line = '   '
    for v in values:
        if len(line) + len(v) + 2 > 100:
            print(line)
            line = '   '
        line += ' ' + v + ','
    print(line)
    print('};')


def printable_starts():
    """Where stretches of printable and other code points begin, in turn; the first one is not printable."""
    starts, last = [], False
    for c in range(0x110000):
        if chr(c).isprintable() != last:
            last = not last
            starts.append(c)
    return ['0x%X' % s for s in starts]


def case_runs(change):
    """Code points that change to one other: {first, last, step, difference}."""
    runs = []
    for c in CODE_POINTS:
        to = change(chr(c))
        if len(to) != 1 or ord(to) == c:
            continue
        difference = ord(to) - c
        if runs and runs[-1][3] == difference:
            first, last, step, _ = runs[-1]
            if first == last and c - last <= 2 or first != last and c - last == step:
                runs[-1] = [first, c, c - last, difference]
                continue
        runs.append([c, c, 1, difference])
    return ['{0x%X, 0x%X, %d, %d}' % tuple(r) for r in runs]


def expansions(change, but=lambda s: None):
    """Code points that change to several, or otherwise than `but` changes them."""
    found = []
    for c in CODE_POINTS:
        to = change(chr(c))
        if len(to) > 1 and to != but(chr(c)) or but(chr(c)) is not None and to != but(chr(c)):
            found.append('{0x%X, {%s}}' % (c, ', '.join('0x%X' % ord(t) for t in to)))
    return found


def main():
    print('// Unicode %s. Written by generate_unicode_text.py; do not edit.' % unicodedata.unidata_version)
    rows('kPrintableStarts', 'char32_t', printable_starts())
    rows('kUpperRuns', 'CaseRun', case_runs(str.upper))
    rows('kLowerRuns', 'CaseRun', case_runs(str.lower))
    rows('kUpperExpansions', 'CaseExpansion', expansions(str.upper))
    rows('kLowerExpansions', 'CaseExpansion', expansions(str.lower))
    # What starts a word is in upper case but for these.
    rows('kTitleExceptions', 'CaseExpansion', expansions(str.title, str.upper))


if __name__ == '__main__':
    sys.exit(main())
