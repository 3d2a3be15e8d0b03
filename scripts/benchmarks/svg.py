"""Parts of drawings that are readable on light and dark pages."""

import html

# Okabe & Ito's colours and three more, told apart with any colour vision and on light and dark.
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#8a6fdf", "#2fa8a0",
           "#8c8c8c")
_STYLE = """
  .paper { fill: #ffffff } .text { fill: #1f2328; font: 12px sans-serif }
  .title { font-weight: bold; font-size: 14px } .small { font-size: 11px }
  .grid { stroke: #d0d7de; stroke-width: 0.6 } .roof { stroke: #1f2328; stroke-width: 1.6; fill: none }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .text { fill: #e6edf3 } .grid { stroke: #30363d }
    .roof { stroke: #e6edf3 } }
"""


def text(x, y, words, style="", anchor="start"):
    """`style` is title, small or nothing; `anchor` is the SVG attribute text-anchor."""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return (f'<text class="{" ".join(filter(None, ("text", style)))}"{place} x="{x:.1f}" '
            f'y="{y:.1f}">{html.escape(words, quote=False)}</text>')


def document(width, height, title, parts):
    """The whole file. `parts` may use the classes text, title, small, grid and roof."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">', f"<title>{html.escape(title, quote=False)}</title>",
        f"<style>{_STYLE}</style>", f'<rect class="paper" width="{width}" height="{height}"/>',
        *parts, "</svg>"]) + "\n"
