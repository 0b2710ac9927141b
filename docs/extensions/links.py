"""Looks for links within the built site that lead nowhere: python docs/extensions/links.py target/site

Sphinx knows of its own references; this sees those to the pages of rustdoc and to pictures too.
"""

import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def _broken(site, name, pages):
    """Links of a page to files that are not there, or to places that its pages do not have."""
    for link in sorted(pages[name].links):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (name.parent / unquote(parts.path)).resolve() if parts.path else name
        target = target / "index.html" if target.is_dir() else target
        known = pages.get(target)
        if not target.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.anchors):
            yield f"{name.relative_to(site)}: {link} leads nowhere"


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    ours = [page for page in site.rglob("*.html") if "rust" not in page.relative_to(site).parts[:1]]
    pages = {page: _Page(page.read_text(encoding="utf-8")) for page in ours}
    broken = [line for name in pages for line in _broken(site, name, pages)]
    print("\n".join(broken) or f"{site}: {len(pages)} pages, every link leads somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
