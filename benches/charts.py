"""Small charts with logarithmic axes, as SVG."""

import math

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 250, 190, 46, 30, 12, 34
COLUMNS = 3
# one color and one dash for each series, readable on light and dark ground
STYLES = (("#2f81f7", ""), ("#d1741f", "5 3"))


def short(value):
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def powers(values):
    """The exponents of the powers of ten around values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


class Panel:
    """A panel with its upper left corner at a point. `series` are dictionaries from x to y, of which some may be empty."""

    def __init__(self, left, top, series):
        self.left, self.top = left + LEFT, top + TOP
        self.width, self.height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        points = [point for line in series for point in line.items()]
        self.across, self.up = powers([x for x, _ in points]), powers([y for _, y in points])

    def x(self, value):
        low, high = self.across
        return self.left + (math.log10(value) - low) / (high - low) * self.width

    def y(self, value):
        low, high = self.up
        return self.top + self.height - (math.log10(value) - low) / (high - low) * self.height

    def grid(self):
        bottom, right = self.top + self.height, self.left + self.width
        for power in range(self.across[0], self.across[1] + 1):
            x = self.x(10**power)
            yield f'<path class="grid" d="M{x:.1f} {self.top}V{bottom}"/><text x="{x:.1f}" y="{bottom + 13}" text-anchor="middle">{short(10**power)}</text>'
        for power in range(self.up[0], self.up[1] + 1):
            y = self.y(10**power)
            yield f'<path class="grid" d="M{self.left} {y:.1f}H{right}"/><text x="{self.left - 5}" y="{y + 3:.1f}" text-anchor="end">{short(10**power)}</text>'

    def line(self, points, style):
        color, dash = style
        path = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points.items())
        yield f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.8" stroke-dasharray="{dash}"/>'
        yield from (f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="2.2" fill="{color}"/>' for x, y in points.items())


def chart(panels, names):
    """A picture of panels: (title, name of the x axis, one dictionary from x to y for each of `names`)."""
    rows = -(-len(panels) // COLUMNS)
    width, height = WIDTH * COLUMNS, HEIGHT * rows + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="9">',
        "<style>text{fill:#7d8590}.grid{stroke:#7d859040;stroke-width:.7}.title{font-size:10px;font-weight:bold}</style>",
    ]
    for number, (title, axis, series) in enumerate(panels):
        left, top = number % COLUMNS * WIDTH, number // COLUMNS * HEIGHT
        panel = Panel(left, top, series)
        parts.append(f'<text class="title" x="{panel.left}" y="{top + 18}">{title}</text>')
        parts += panel.grid()
        parts.append(f'<text x="{panel.left + panel.width / 2}" y="{panel.top + panel.height + 27}" text-anchor="middle">{axis}</text>')
        for points, style in zip(series, STYLES):
            if points:
                parts += panel.line(points, style)
    for number, (name, (color, dash)) in enumerate(zip(names, STYLES)):
        x, y = LEFT + number * 120, height - 10
        parts.append(f'<path d="M{x} {y - 3}h24" stroke="{color}" stroke-width="1.8" stroke-dasharray="{dash}"/><text x="{x + 30}" y="{y}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
