"""The machine that a comparison ran on: times mean nothing without it."""

from __future__ import annotations

import os
import platform


def machine_text() -> str:
    """Processor, cores that may be used, system and Python, in one line."""
    count = getattr(os, "process_cpu_count", os.cpu_count)()
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    cores = f"{count} core{'s' * (count != 1)}" if count else "unknown number of cores"
    return f"{_processor()}, {cores}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown processor"
