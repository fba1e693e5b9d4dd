# SPDX-License-Identifier: Apache-2.0
"""Line plots with logarithmic axes as SVG that needs nothing from outside and follows the reader's light or dark theme."""
import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 880, 410, 70, 310, 58, 44
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
STYLE = '''
 .back { fill: #ffffff } text { fill: #1f2328 } .dim { fill: #59636e } .grid { stroke: #d1d9e0 }
 .c0 { stroke: #cf222e; fill: #cf222e } .c1 { stroke: #0969da; fill: #0969da } .c2 { stroke: #8250df; fill: #8250df }
 .c3 { stroke: #bc4c00; fill: #bc4c00 } .c4 { stroke: #1a7f37; fill: #1a7f37 } .c5 { stroke: #9a6700; fill: #9a6700 }
 .c6 { stroke: #116b7b; fill: #116b7b } .c7 { stroke: #bf3989; fill: #bf3989 }
 @media (prefers-color-scheme: dark) {
  .back { fill: #0d1117 } text { fill: #f0f6fc } .dim { fill: #9198a1 } .grid { stroke: #3d444d }
  .c0 { stroke: #ff7b72; fill: #ff7b72 } .c1 { stroke: #58a6ff; fill: #58a6ff } .c2 { stroke: #bc8cff; fill: #bc8cff }
  .c3 { stroke: #ffa657; fill: #ffa657 } .c4 { stroke: #3fb950; fill: #3fb950 } .c5 { stroke: #d29922; fill: #d29922 }
  .c6 { stroke: #56d4dd; fill: #56d4dd } .c7 { stroke: #f778ba; fill: #f778ba }
 }
 path.line { fill: none; stroke-width: 2 } .theirs { stroke-dasharray: 6 4 } .grid { stroke-width: 1 }
 text.label { stroke: none }
'''


class Line:
    """points: [(services, value, is_bound)], where a bound is a value that was not reached in the end. note: beside its name."""

    def __init__(self, name, points, colour, is_dashed=False, note=''):
        self.name, self.points, self.colour, self.is_dashed, self.note = name, points, colour, is_dashed, note


def number(value):
    return f'{value:,.0f}' if value >= 1 else f'{value:g}'


class Axes:
    def __init__(self, lines):
        xs = sorted({point[0] for line in lines for point in line.points})
        ys = [point[1] for line in lines for point in line.points]
        self.xs = xs
        self.x_low, self.x_high = math.log10(xs[0]) - 0.05, math.log10(xs[-1]) + 0.05
        self.y_low, self.y_high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
        self.y_high = max(self.y_high, self.y_low + 1)

    def x(self, value):
        return LEFT + (math.log10(value) - self.x_low) / (self.x_high - self.x_low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        part = (math.log10(value) - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def draw(self):
        for exponent in range(self.y_low, self.y_high + 1):
            y = self.y(10.0 ** exponent)
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="dim" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(10.0 ** exponent)}</text>'
        last = -100
        for value in self.xs:
            x = self.x(value)
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            if x - last > 44:
                yield f'<text class="dim" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:,}</text>'
                last = x
        yield f'<text class="dim" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">services</text>'


def draw_line(line, axes):
    places = [(axes.x(services), axes.y(value), is_bound) for services, value, is_bound in line.points]
    path = ' L'.join(f'{x:.1f} {y:.1f}' for x, y, _bound in places)
    yield f'<path class="line c{line.colour}{" theirs" if line.is_dashed else ""}" d="M{path}"/>'
    for x, y, is_bound in places:
        if is_bound:  # an arrow: it is somewhere above
            yield f'<path class="c{line.colour}" d="M{x - 6:.1f} {y:.1f} L{x + 6:.1f} {y:.1f} L{x:.1f} {y - 11:.1f} Z"/>'
        else:
            yield f'<circle class="c{line.colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'


def draw_legend(lines):
    y = TOP + 6
    for line in lines:
        x = WIDTH - RIGHT + 20
        dash = ' theirs' if line.is_dashed else ''
        yield f'<path class="line c{line.colour}{dash}" d="M{x} {y - 4} L{x + 26} {y - 4}"/>'
        yield f'<text x="{x + 34}" y="{y}">{html.escape(line.name)}</text>'
        if line.note:
            y += 16
            yield f'<text class="dim" x="{x + 34}" y="{y}">{html.escape(line.note)}</text>'
        y += 24


def draw(title, subtitle, lines):
    """The whole picture, as text; nothing when there is nothing to draw."""
    lines = [line for line in lines if line.points]
    if not lines:
        return ''
    axes = Axes(lines)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family=\'{FONT}\' font-size="12" '
             f'role="img"><title>{html.escape(title)}</title><style>{STYLE}</style>',
             f'<rect class="back" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
             f'<text x="16" y="22" font-size="15" font-weight="600">{html.escape(title)}</text>',
             f'<text class="dim" x="16" y="38" font-size="11">{html.escape(subtitle)}</text>', *axes.draw()]
    for line in sorted(lines, key=lambda line: line.is_dashed):  # dashes let show what they cover
        parts += draw_line(line, axes)
    parts += [*draw_legend(lines), '</svg>']
    return '\n'.join(parts) + '\n'
