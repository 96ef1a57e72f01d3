"""A WebSocket client, as much of RFC 6455 as a browser on the loopback interface needs: text
messages, whole or in pieces, and pings."""
import base64
import os
import socket
import struct


class WebSocket:
    def __init__(self, port, path, seconds=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self._read()
        head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise OSError(f"no WebSocket: {head.splitlines()[0].decode()}")

    def _read(self):
        more = self.socket.recv(1 << 16)
        if not more:
            raise OSError("the other side closed the connection")
        self.bytes += more

    def _take(self, count):
        while len(self.bytes) < count:
            self._read()
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def _send(self, kind, data):
        size, mask = len(data), os.urandom(4)
        length = (struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BH", 128 | 126, size)
            if size < 65536 else struct.pack("!BQ", 128 | 127, size))
        repeated = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
        self.socket.sendall(bytes([128 | kind]) + length + mask + masked)

    def send(self, text):
        self._send(1, text.encode())

    def receive(self):
        """The next text."""
        message = b""
        while True:
            first, size = self._take(2)
            if size == 126:
                size, = struct.unpack("!H", self._take(2))
            elif size == 127:
                size, = struct.unpack("!Q", self._take(8))
            data, kind = self._take(size), first & 15
            if kind == 9:
                self._send(10, data)
            elif kind == 8:
                raise OSError("the other side closed the WebSocket")
            elif kind in (0, 1):
                message += data
                if first & 128:
                    return message.decode()

    def close(self):
        self.socket.close()
