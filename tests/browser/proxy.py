"""A TCP proxy on loopback whose connections can be cut, as a network would."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class CuttableProxy:
    """Forwards connections to a port.

    `cut` closes all of them and rejects new ones until `restore`. After `stall`, nothing passes, but no connection is
    closed; `restore` lets new ones pass, and those from before stay dead.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._dead: set[socket.socket] = set()
        self._is_cut = self._is_stalled = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The URL of the service through this proxy."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Close all connections, and every new one at once."""
        with self._lock:
            self._is_cut = True
            for one in self._open:
                _shut(one)

    def stall(self) -> None:
        """Forward nothing, without closing any connection."""
        with self._lock:
            self._is_stalled = True
            self._dead |= self._open

    def restore(self) -> None:
        """Forward connections again."""
        with self._lock:
            self._is_cut = self._is_stalled = False

    def close(self) -> None:
        self.cut()
        for one in tuple(self._dead):
            _shut(one)
            if one not in self._open:  # the others are closed when they have been forwarded
                one.close()
        _shut(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_cut:
                    client.close()
                    continue
                if self._is_stalled:
                    self._dead.add(client)
                    continue
                server = socket.create_connection(("127.0.0.1", self._target_port))
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if source not in self._dead:
                    target.sendall(data)
        _shut(target)
        with self._lock:
            self._open.discard(source)
        source.close()


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
