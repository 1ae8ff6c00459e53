"""A web server on this machine that serves well, badly, slowly or not at all."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LIMIT = 600  # seconds for what never comes; a machine may be busy


class Web:
    """What is served, by path, and what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.truncated: set[str] = set()  # paths of which only the first half is sent
        self.stalled: set[str] = set()  # paths that wait for `released` after the first half
        self.unsized: set[str] = set()  # paths without a length
        self.requests: list[str] = []
        self.halfway = threading.Event()
        self.released = threading.Event()
        self.address = ""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        web: Web = self.server.web  # type: ignore[attr-defined]
        web.requests.append(self.path)
        content = web.files.get(self.path)
        if content is None:
            self.send_error(404, "Not Found")
            return
        self.send_response(200)
        if self.path not in web.unsized:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        self.wfile.flush()
        if self.path in web.truncated:
            return
        if self.path in web.stalled:
            web.halfway.set()
            web.released.wait(LIMIT)
        self.wfile.write(content[half:])

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: object) -> None:
        """Clients that hang up or are killed are part of the tests."""


@contextmanager
def serving() -> Iterator[Web]:
    web = Web()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.web = web  # type: ignore[attr-defined]
        web.address = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield web
        finally:
            web.released.set()
            server.shutdown()
            thread.join()
