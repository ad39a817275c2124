"""Kombu's filesystem transport with messages that appear whole: the embedded mode's broker.

Kombu writes a message into the file that consumers already look for, so that a consumer can take
it half-written and lose it. Here it is written under another name, then renamed.
"""

import os
import time
import uuid
from pathlib import Path
from typing import Any

from kombu.transport import filesystem
from kombu.utils.encoding import str_to_bytes
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    def _put(  # type: ignore[override]  # kombu's own two signatures differ
        self, queue: str, payload: Any, **kwargs: Any
    ) -> None:
        # Nanoseconds of the wall clock keep the order of sending across reboots and bursts.
        name = f"{time.time_ns():020d}_{uuid.uuid4()}.{queue}.msg"
        folder = Path(self.data_folder_out)
        unfinished = folder / f"{name}.part"
        unfinished.write_bytes(str_to_bytes(dumps(payload)))
        os.replace(unfinished, folder / name)


class Transport(filesystem.Transport):
    Channel = Channel
    polling_interval = 0.05  # seconds; kombu's default of 1 s would cost 950 ms a message
