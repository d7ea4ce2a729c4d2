"""Names beside marks, where they cover no mark, no line, no axis and no other name, as far as there is room."""
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

SIZE = 6.5  # of type
MARK = 4.0  # points from a mark's middle to its edge
# Which way from the mark, best first.
_WAYS = ((1, 1), (1, 0), (1, -1), (0, 1), (-1, 1), (0, -1), (-1, 0), (-1, -1))
_SIDES = {1: "left", 0: "center", -1: "right"}
_LEVELS = {1: "bottom", 0: "center", -1: "top"}

Label = tuple[float, float, str]  # x, y, text


def place(figure: Figure, panels: list[tuple[Axes, list[Label]]]) -> None:
    """Call when all else is drawn: places depend on the layout."""
    figure.canvas.draw()
    point = figure.dpi / 72
    for ax, labels in panels:
        taken = [_around(*each, MARK * point) for line in ax.lines if line.get_marker() not in ("None", "", None)
                 for each in ax.transData.transform(line.get_xydata())]
        crossed = [spot for line in ax.lines if line.get_linestyle() not in ("None", "", " ")
                   for spot in _along(line, 2 * point)]
        for x, y, text in labels:
            taken.append(_place(ax, (x, y), text, taken, crossed, point))


def _place(ax: Axes, at: tuple[float, float], text: str, taken: list[Bbox], crossed: list, point: float) -> Bbox:
    best = None
    for rank, (right, up) in enumerate(_WAYS):
        label = ax.annotate(text, at, ((MARK + 1.5) * right, (MARK + 1.5) * up), textcoords="offset points",
                            fontsize=SIZE, ha=_SIDES[right], va=_LEVELS[up], zorder=5)
        label.set_in_layout(False)
        box = label.get_window_extent()
        cost = (10 * sum(_overlap(box, other) for other in taken) + 40 * _outside(box, ax.bbox)
                + 6 * point * point * sum(box.contains(*spot) for spot in crossed), rank)
        if best is None or cost < best[0]:
            if best:
                best[1].remove()
            best = cost, label, box
        else:
            label.remove()
    return best[2]


def _around(x: float, y: float, radius: float) -> Bbox:
    return Bbox([[x - radius, y - radius], [x + radius, y + radius]])


def _overlap(one: Bbox, other: Bbox) -> float:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return width * height if width > 0 and height > 0 else 0.0


def _outside(box: Bbox, of: Bbox) -> float:
    return box.width * box.height - _overlap(box, of)


def _along(line, step: float) -> list[tuple[float, float]]:
    """Spots on a line, so many pixels apart."""
    corners = line.get_transform().transform_path(line.get_path()).vertices
    spots = []
    for (x0, y0), (x1, y1) in zip(corners, corners[1:]):
        count = int(max(abs(x1 - x0), abs(y1 - y0)) / step) + 1
        spots += [(x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count) for i in range(count)]
    return spots
