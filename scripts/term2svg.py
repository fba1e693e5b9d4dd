#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Terminal output as a picture: term2svg.py [--columns N] [--section N[:LINES]]... < OUTPUT > PICTURE.svg

Reads text with ANSI colours and writes an SVG that needs nothing from outside. Sections are those of the demo ("── 3. ..."); 0
is what stands before the first. A section can be cut after so many lines. The picture in the README:

    script -qec 'make demo' /dev/null </dev/null |
        scripts/term2svg.py --section 0 --section 2 --section 3:14 --section 4:9 --section 5 --section 8 > docs/demo.svg
"""
import argparse
import html
import re
import sys

FONT = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
CELL, LINE, MARGIN = 7.8, 17, 16
COLOURS = {'31': '#ff7b72', '32': '#7ee787', '33': '#f2cc60', '34': '#79c0ff', '35': '#d2a8ff', '36': '#76e3ea'}
BACKGROUND, FOREGROUND, DIM = '#0d1117', '#e6edf3', '#8b949e'
ESCAPE = re.compile(r'\x1b\[([0-9;]*)m')
OTHER = re.compile(r'\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b[()][A-Z0-9]|\r')


def spans(line, columns):
    """[(column, text, style)] of one line, cut to the width."""
    found, style, column, at = [], {}, 0, 0
    pieces = ESCAPE.split(line)
    for text, codes in zip(pieces[::2], [*pieces[1::2], '']):
        room = columns - column
        if len(text) > room:
            text = text[:max(room - 1, 0)] + '…' if room > 0 else ''
        if text:
            found.append((column, text, dict(style)))
            column += len(text)
        for code in codes.split(';') if codes or at < len(pieces) - 1 else ():
            if code in ('', '0'):
                style = {}
            elif code == '1':
                style['font-weight'] = 'bold'
            elif code == '2':
                style['fill'] = DIM
            elif code in COLOURS:
                style['fill'] = COLOURS[code]
        at += 2
    return found


def bars(column, text, style, y):
    """Block letters as rectangles: fonts draw them with gaps."""
    for found in re.finditer('█+', text):
        x = MARGIN + (column + found.start()) * CELL
        yield (f'<rect x="{x:.1f}" y="{y - 12}" width="{len(found.group()) * CELL:.1f}" height="13" '
               f'fill="{style.get("fill", FOREGROUND)}"/>')


def draw(lines, columns):
    height = MARGIN * 2 + LINE * len(lines)
    width = MARGIN * 2 + CELL * columns
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
           f'font-family=\'{FONT}\' font-size="13">')
    yield f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
    for number, line in enumerate(lines):
        y = MARGIN + LINE * number + 13
        for column, text, style in spans(line, columns):
            yield from bars(column, text, style, y)
            plain = text.replace('█', ' ')
            if not plain.strip():
                continue
            start = len(plain) - len(plain.lstrip())
            plain = plain.strip()
            extra = ''.join(f' {k}="{v}"' for k, v in style.items() if k != 'fill')
            yield (f'<text x="{MARGIN + (column + start) * CELL:.1f}" y="{y}" xml:space="preserve" '
                   f'textLength="{len(plain) * CELL:.1f}" lengthAdjust="spacingAndGlyphs" '
                   f'fill="{style.get("fill", FOREGROUND)}"{extra}>{html.escape(plain)}</text>')
    yield '</svg>'


def choose(lines, wanted):
    """The lines of the wanted sections, {number: limit}; all when nothing is wanted in particular."""
    if not wanted:
        return lines
    section, taken, chosen = 0, 0, []
    for line in lines:
        found = re.match(r'── (\d+)\.', ESCAPE.sub('', line))
        if found:
            section, taken = int(found.group(1)), 0
        limit = wanted.get(section, 0)
        if taken < limit:
            chosen.append(line)
        elif taken == limit and limit:
            chosen += ['   \x1b[2m[...]\x1b[0m', '']
        taken += 1
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--columns', type=int, default=106)
    parser.add_argument('--section', action='append', default=[])
    options = parser.parse_args()
    wanted = {int(s.split(':')[0]): int((s.split(':') + ['10000'])[1]) for s in options.section}
    lines = [OTHER.sub('', line.rstrip('\n')).rstrip() for line in sys.stdin]
    print('\n'.join(draw(choose(lines, wanted), options.columns)))


if __name__ == '__main__':
    main()
