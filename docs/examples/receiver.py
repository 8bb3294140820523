"""A small receiver of log posts: python3 receiver.py PORT [WORD…]; prints the lines that hold one of the words."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Receiver(BaseHTTPRequestHandler):
    """Answers every post with 200, as a game server wants it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Print what is asked for."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode(errors="replace")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        for line in body.split("\n"):
            if line and (not sys.argv[2:] or any(word in line for word in sys.argv[2:])):
                print(line, flush=True)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of the requests themselves."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
