"""A receiver of log posts: python3 receiver.py PORT [TEXT…] prints the lines that contain one of the texts."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Receiver(BaseHTTPRequestHandler):
    """Answers every post with 200, which a game server takes as acknowledged."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Print the matching lines of a post."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode(errors="replace")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        for line in body.split("\n"):
            if line and (not sys.argv[2:] or any(text in line for text in sys.argv[2:])):
                print(line, flush=True)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
