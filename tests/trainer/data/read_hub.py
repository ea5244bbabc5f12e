"""Reads the small hub in both ways and prints what came, as one JSON object. A program of its
own: the hub's libraries read where it is when they are imported.

    python read_hub.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from bitwatch import config as configuration
from tests.trainer.data.small_hub import SmallHub


def main() -> None:
    folder = Path(sys.argv[1])
    hub = SmallHub(folder / "files")
    os.environ |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "hf")}
    from trainer.data import retry, row_groups, sharing, source

    retry.PAUSES_S = (0.01, 0.01)
    text = source.training(configuration.Data(source="me/novel"))
    shares = {
        "as-is": sharing.share(sharing.open_rows(text, "text"), 0, 1, 0, 1),
        "reshard": row_groups.RowGroups(row_groups.open_shards(text, "text"), "text", 0, 1, None),
    }
    answer: dict[str, object] = {}
    for mode, share in shares.items():
        hub.parts, hub.failed, hub.fail_at = 0, 0, {2, 3, 7}
        said: list[str] = []
        rows = retry.exactly_once(lambda given, share=share: share.read(0, 0, given), said.append)
        read = [row["text"].split()[0] for row in rows]
        answer[mode] = {"rows": read, "said": said, "failed": hub.failed}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
