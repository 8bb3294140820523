"""A plain RCON client: python3 rcon.py PORT PASSWORD COMMAND… executes commands and prints the answers."""

import socket
import struct
import sys


def send(connection: socket.socket, number: int, kind: int, text: str) -> None:
    """Send one packet: size, id, type, text, two zero bytes."""
    body = text.encode() + b"\0\0"
    connection.sendall(struct.pack("<iii", len(body) + 8, number, kind) + body)


def receive(connection: socket.socket) -> tuple[int, str]:
    """Return the id and the text of the next packet."""
    size = struct.unpack("<i", receive_exactly(connection, 4))[0]
    packet = receive_exactly(connection, size)
    return struct.unpack("<i", packet[:4])[0], packet[8:-2].decode(errors="replace")


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Return the next `size` bytes."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            sys.exit("the server closed the connection")
        data += part
    return data


def main() -> None:
    """Authenticate, execute the commands, print the answers."""
    if len(sys.argv) < 4:
        sys.exit("usage: python3 rcon.py PORT PASSWORD COMMAND…")
    port, password, *commands = sys.argv[1:]
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        send(connection, 1, 3, password)
        receive(connection)  # an empty packet precedes the authentication response
        if receive(connection)[0] == -1:
            sys.exit("wrong password")
        for number, command in enumerate(commands, start=2):
            send(connection, number, 2, command)
            sys.stdout.write(receive(connection)[1])


if __name__ == "__main__":
    main()
