"""What systemd-logind will do to a run when the last session of its user ends.

`KillUserProcesses=yes` kills what belongs to a session, `RemoveIPC=yes` deletes the user's shared
memory; both spare users who linger. Read from files: logind itself may not be asked for.
"""

from __future__ import annotations

import configparser
import os
import pwd
import re
from pathlib import Path

# In the order in which systemd reads them: a later one overrides.
FOLDERS = ("usr/lib/systemd", "etc/systemd", "run/systemd")
SESSION = re.compile(r"/session-[^/]*\.scope")


def will_kill(root: Path = Path("/"), user: str | None = None) -> list[str]:
    """Why the end of the session could end or break the run, a few words each; empty when it
    will not, or when nobody could tell."""
    try:
        name = user or pwd.getpwuid(os.getuid()).pw_name
        in_session = SESSION.search((root / "proc/self/cgroup").read_text()) is not None
    except (OSError, KeyError):
        return []
    if not in_session or (root / "var/lib/systemd/linger" / name).exists():
        return []
    settings = _logind(root)
    found = []
    if settings.get("killuserprocesses", "no") in TRUE:
        found.append("logind ends all processes of a session with it (KillUserProcesses=yes)")
    if name != "root" and settings.get("removeipc", "yes") in TRUE:
        found.append("logind deletes shared memory at the end of the last one (RemoveIPC=yes)")
    return found


TRUE = ("yes", "true", "on", "1")


def _logind(root: Path) -> dict[str, str]:
    """The [Login] section as all files together give it, keys in small letters."""
    files = [root / folder / "logind.conf" for folder in FOLDERS]
    drops = [path for folder in FOLDERS for path in (root / folder).glob("logind.conf.d/*.conf")]
    found: dict[str, str] = {}
    for path in (*files, *sorted(drops, key=lambda path: path.name)):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue
        if parser.has_section("Login"):
            found |= {key: value.strip().lower() for key, value in parser.items("Login")}
    return found
