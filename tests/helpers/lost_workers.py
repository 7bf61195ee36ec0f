"""Workers of a cluster that are killed."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time


def kill_one(cluster, delay=0.0):
    """Kill a worker process after some time; its nanny starts another one."""

    def kill():
        time.sleep(delay)
        # A nanny does not replace a worker that is killed while it starts.
        processes = [nanny.process for nanny in list(cluster.workers.values()) if nanny.process is not None]
        running = [process.pid for process in processes if process.status.name == "running"]
        with contextlib.suppress(ProcessLookupError, IndexError, TypeError):
            os.kill(running[-1], signal.SIGKILL)

    if delay:
        threading.Thread(target=kill).start()
    else:
        kill()
