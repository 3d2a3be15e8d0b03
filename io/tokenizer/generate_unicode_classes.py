#!/usr/bin/env python3
"""Writes unicode_classes.inc: where in the code space letters, numbers, spaces, punctuation and marks begin and end.

    python3 io/tokenizer/generate_unicode_classes.py > io/tokenizer/unicode_classes.inc

Letters, numbers, punctuation and marks are the general categories L*, N*, P* and M*; spaces are the property White_Space, which Unicode keeps stable
and which unicodedata does not offer, so it is listed here.
"""
import sys
import unicodedata

SPACES = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F,
          0x3000]


def class_of(c):
    """The values of CodePointClass."""
    if c in SPACES:
        return 3
    return {'L': 1, 'N': 2, 'P': 4, 'M': 5}.get(unicodedata.category(chr(c))[0], 0)


def main():
    starts, last = [], None
    for c in range(0x110000):
        if class_of(c) != last:
            last = class_of(c)
            starts.append('0x%X' % (c << 3 | last))
    print('// Unicode %s. Written by generate_unicode_classes.py; do not edit.' % unicodedata.unidata_version)
    line = ''
    for s in starts:
        if len(line) + len(s) + 2 > 100:
            print(line.rstrip())
            line = ''
        line += s + ', '
    print(line.rstrip())


if __name__ == '__main__':
    sys.exit(main())
