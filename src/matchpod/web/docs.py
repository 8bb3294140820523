"""Where does the documentation page come from? From files of this package, read once; it fetches nothing else."""

from __future__ import annotations

from importlib import resources

from matchpod.web.endpoint import Answer, Header

_FILES = {
    "": ("docs.html", b"text/html; charset=utf-8"),
    "docs.css": ("docs.css", b"text/css; charset=utf-8"),
    "docs.js": ("docs.js", b"text/javascript; charset=utf-8"),
}
_HEADERS: tuple[Header, ...] = (
    # The page shows text of the description only, and no script but its own may run in it.
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-cache"),
)


def read_pages() -> dict[str, Answer]:
    """The page under the empty name, and its files under theirs."""
    folder = resources.files(__package__) / "assets"
    return {
        name: Answer((folder / file).read_bytes(), content_type=content_type, headers=_HEADERS)
        for name, (file, content_type) in _FILES.items()
    }
