"""A program that stands in for a game in tests of its wrapper: RCON with `status` and `quit`, and bad manners.

Arguments: port, folder, flags. Its map is loaded when the folder has a file `loaded`. It accepts the password in the
file `password` of the folder if there is one, else that of its environment. It prints what it does.
"""

from __future__ import annotations

import os
import signal
import socketserver
import sys
import time
from pathlib import Path

from cs2_protocol.rcon import PASSWORD_VARIABLE, AuthAttempt, CommandReceived, MirrorRequested, ServerConnection

IGNORES_QUIT = "ignores-quit"
IGNORES_SIGTERM = "ignores-sigterm"
ABANDONS_A_CHILD = "abandons-a-child"
NO_MIRROR = "no-mirror"

LOADING = "Server:  Running [0.0.0.0:27015]\n---------spawngroups----\n---------players--------\n#end\n"
MAP_LINE = "loaded spawngroup(  1)  : SV:  [1: de_nuke | main lump | mapload]\n"
LOADED = LOADING.replace("groups----\n", f"groups----\n{MAP_LINE}")


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


class Session(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        connection = ServerConnection()
        while received := self.request.recv(4096):
            for event in connection.receive(received):
                match event:
                    case AuthAttempt(id=number, password=password):
                        is_right = password == _password()
                        say(f"password {'accepted' if is_right else 'rejected'}")
                        self.request.sendall(connection.accept(number) if is_right else connection.refuse(number))
                    case CommandReceived(id=number, text=text):
                        say(f"command {text}")
                        self.request.sendall(connection.answer(number, _output(text)))
                    case MirrorRequested(id=number) if NO_MIRROR not in sys.argv:
                        self.request.sendall(connection.mirror(number))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def _password() -> str:
    file = Path(sys.argv[2]) / "password"
    return file.read_text() if file.exists() else os.environ[PASSWORD_VARIABLE]


def _output(command: str) -> str:
    if command == "quit" and IGNORES_QUIT not in sys.argv:
        os._exit(0)
    return LOADED if (Path(sys.argv[2]) / "loaded").exists() else LOADING


def _abandon_a_child() -> None:
    """Start a process whose parent exits at once, and which reports its new parent."""
    parent = os.fork()
    if parent == 0:
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.01)
            say(f"orphan {os.getpid()} has the parent {os.getppid()}")
        os._exit(0)
    os.waitpid(parent, 0)


def main() -> None:
    if IGNORES_SIGTERM in sys.argv:
        signal.signal(signal.SIGTERM, lambda *_: say("SIGTERM ignored"))
    if ABANDONS_A_CHILD in sys.argv:
        _abandon_a_child()
    with Server(("127.0.0.1", int(sys.argv[1])), Session) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
