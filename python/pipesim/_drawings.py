"""Drawings in a notebook's page: as wide as the cell, in its colours, and without a rule that touches anything else."""

from __future__ import annotations

import re
import zlib

# Colours of the pages in the dark (sim/report/html/page/page.css).
_DARK = (".page{fill:#1a1e25}", ".row{fill:#1a1e25;stroke:#59616e}", "text{fill:#e9ecf1}", ".b{stroke:#1a1e25}")


def inline(svg: str) -> str:
    """The drawing as a part of a page of HTML."""
    scope = f"pipesim-{zlib.crc32(svg.encode()):08x}"
    head, rules, body = re.split(r"<style>(.*?)</style>", svg, 1)
    light = "".join(f".{scope} {rule}}}" for rule in rules.split("}") if rule)
    dark = "".join(f".{scope} {rule}" for rule in _DARK)
    night = "".join(f":where([data-jp-theme-light=false]) .{scope} {rule}" for rule in _DARK)
    head = re.sub(r' width="[\d.]+" height="[\d.]+"', f' class="{scope}" style="width:100%;height:auto;min-width:560px"', head, 1)
    style = f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}{night}</style>"
    return f"<figure style='margin:8px 0;overflow-x:auto'>{head}{style}{body}</figure>"
