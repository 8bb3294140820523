"""Build command lines that people can copy into a shell. Secrets in them are shell variables."""

from __future__ import annotations

from shlex import quote


def curl_line(url: str) -> str:
    """Return a curl command that sends a GET request to an API URL, with the API key in `$KEY`."""
    return f'curl -s {quote(url)} -H "Authorization: Bearer $KEY"'


def verify_line(message_id: str, timestamp: str) -> str:
    """Return a command that signs `callback-body.json` with `$SECRET`, as the service does."""
    # The secret is passed in the environment: all users of a machine can read the arguments of its processes.
    program = (
        "import base64, hashlib, hmac, os, sys; "
        'key = base64.b64decode(os.environ["SECRET"].removeprefix("whsec_")); '
        f'signed = b"{message_id}.{timestamp}." + sys.stdin.buffer.read(); '
        'print("v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode())'
    )
    return f'SECRET="$SECRET" python3 -c {quote(program)} < callback-body.json'
