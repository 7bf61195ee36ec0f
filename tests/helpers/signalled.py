"""Programs to which a test sends signals."""

from __future__ import annotations

import signal
import subprocess
from contextlib import contextmanager

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


@contextmanager
def started(command, *, ignored=(), **options):
    """Start a program that ignores the given signals only, and kill it at the end if it still runs.

    Tests that run in the background or under nohup ignore some signals, and so would what they start.
    """

    def set_signals():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    with subprocess.Popen(command, preexec_fn=set_signals, **options) as process:
        try:
            yield process
        finally:
            process.kill()
