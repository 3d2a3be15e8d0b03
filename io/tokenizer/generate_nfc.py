#!/usr/bin/env python3
"""Writes nfc.inc: what Normalization Form C (Unicode Standard Annex #15) needs to know of code points.

    python3 io/tokenizer/generate_nfc.py > io/tokenizer/nfc.inc

Hangul syllables are computed and are not in the tables.
"""
import sys
import unicodedata

HANGUL = range(0xAC00, 0xD7A4)
VOWELS, TRAILS = range(0x1161, 0x1176), range(0x11A8, 0x11C3)


def decomposition(c):
    """One step of the canonical decomposition of c: one or two code points, or none."""
    text = unicodedata.decomposition(chr(c))
    return [] if not text or text[0] == '<' else [int(part, 16) for part in text.split()]


def ranges(value):
    """(first, last, value) where value(c) is not 0 and the same for all of them."""
    found = []
    for c in range(0x110000):
        if not value(c):
            continue
        if found and found[-1][1] == c - 1 and found[-1][2] == value(c):
            found[-1][1] = c
        else:
            found.append([c, c, value(c)])
    return found


def table(kind, name, rows):
    print('constexpr %s %s[] = {' % (kind, name))
    line = '   '
    for row in rows:
        text = ' {%s},' % ', '.join('0x%X' % value for value in row)
        if len(line) + len(text) > 100:
            print(line)
            line = '   '
        line += text
    print(line)
    print('};')


def main():
    steps = {c: decomposition(c) for c in range(0x110000)}
    steps = {c: step for c, step in steps.items() if step and c not in HANGUL}
    # The exclusions of compositions are those that do not come back.
    composed = {tuple(step): c for c, step in steps.items()
                if len(step) == 2 and unicodedata.normalize('NFC', chr(c)) == chr(c)}
    second = {pair[1] for pair in composed}

    def unstable(c):
        return (unicodedata.combining(chr(c)) != 0 or c in second or c in VOWELS or c in TRAILS
                or unicodedata.normalize('NFC', chr(c)) != chr(c))

    print('// Unicode %s. Written by generate_nfc.py; do not edit.' % unicodedata.unidata_version)
    table('ClassRange', 'kClasses', ranges(lambda c: unicodedata.combining(chr(c))))
    table('CodePointRange', 'kUnstable', [row[:2] for row in ranges(unstable)])
    table('Decomposition', 'kDecompositions', [[c, *step, 0][:3] for c, step in sorted(steps.items())])
    table('Composition', 'kCompositions', [[*pair, c] for pair, c in sorted(composed.items())])


if __name__ == '__main__':
    sys.exit(main())
