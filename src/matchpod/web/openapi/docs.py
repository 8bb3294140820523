"""Load the documentation page and its files, which are in this package."""

from __future__ import annotations

from importlib import resources

from matchpod.web.http.responses import Header, Response

_FILES = {
    "": ("docs.html", b"text/html; charset=utf-8"),
    "docs.css": ("docs.css", b"text/css; charset=utf-8"),
    "docs.js": ("docs.js", b"text/javascript; charset=utf-8"),
}
_HEADERS: tuple[Header, ...] = (
    # Allows only the page's own script to run.
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-cache"),
)


def read_pages() -> dict[str, Response]:
    """Return the documentation page under an empty name, and its files under their names."""
    folder = resources.files(__package__) / "assets"
    return {
        name: Response((folder / file).read_bytes(), content_type=content_type, headers=_HEADERS, is_shared=True)
        for name, (file, content_type) in _FILES.items()
    }
