#!/usr/bin/env python3
"""unicode_ranges.py: prints src/data/text/unicode_ranges.inc from Python's tables."""
import unicodedata

HEAD = """/* unicode_ranges.inc: letters and numbers beyond ASCII (general categories L and N of Unicode
 * %s), printed by tools/unicode_ranges.py. Each range is two numbers: twice the gap since the
 * last one (since 0x80), plus 1 for numbers; and its length less 1. A number has seven bits a byte,
 * the lowest first, and the highest bit where more follow. */
"""


def bytes_of(v):
    out = []
    while v >= 128:
        out.append(v & 127 | 128)
        v >>= 7
    return out + [v]


def main():
    out, at, start, before = [], 0x80, 0x80, ""
    for c in range(0x80, 0x110001):
        kind = unicodedata.category(chr(c))[0] if c < 0x110000 else ""
        kind = kind if kind in ("L", "N") else ""
        if kind == before:
            continue
        if before:
            out += bytes_of((start - at) * 2 + (before == "N")) + bytes_of(c - start - 1)
            at = c
        start, before = c, kind
    print(HEAD % unicodedata.unidata_version, end="")
    line = "   "
    for b in out:
        if len(line) + len(f" {b},") > 110:
            print(line)
            line = "   "
        line += f" {b},"
    print(line)


main()
