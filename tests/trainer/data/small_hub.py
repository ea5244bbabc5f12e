"""A hub for one dataset, "me/novel": a real HTTP server that speaks as much of the Hugging Face
hub's protocol as its libraries ask of it for a folder of files, and can be told to fail."""

from __future__ import annotations

import http.server
import json
import re
import threading
import urllib.parse
from pathlib import Path
from typing import Any

COMMIT = "a" * 40


class SmallHub(http.server.ThreadingHTTPServer):
    """`parts` counts the requests for a part of a file. Those whose number is in `fail_at` are
    answered with an error that the hub's own libraries do not try again after; `failed` counts
    them."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.folder = folder
        self.failed = self.parts = 0
        self.fail_at: set[int] = set()
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: Any) -> None:
        """A client that left early is no news."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallHub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        entries = [_entry(file) for file in sorted(self.server.folder.iterdir())]
        file = self.server.folder / path.rsplit("/", 1)[-1]
        if re.fullmatch(r"/api/datasets/me/novel(/revision/\w+)?", path):
            names = [{"rfilename": entry["path"]} for entry in entries]
            self._json({"id": "me/novel", "sha": COMMIT, "siblings": names})
        elif path.startswith("/api/datasets/me/novel/tree/"):
            self._json(entries)
        elif path.startswith("/api/datasets/me/novel/paths-info/"):
            wanted = urllib.parse.parse_qs(body.decode())["paths"]
            self._json([entry for entry in entries if entry["path"] in wanted])
        elif path.startswith("/datasets/me/novel/resolve/") and file.is_file():
            self._file(file.read_bytes())
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _file(self, content: bytes) -> None:
        about = {"ETag": '"1"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not span:
            self._send(200, content, about)
            return
        first, last = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
        about["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        with self.server.lock:
            self.server.parts += 1
            fails = self.server.parts in self.server.fail_at
            self.server.failed += fails
        if fails:
            self._send(520, b"", {})
        else:
            self._send(206, content[first : last + 1], about)

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def _entry(file: Path) -> dict[str, Any]:
    return {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": "b" * 40}
