"""How much memory this process may still take: what is free, and what its control group allows."""

from __future__ import annotations

from pathlib import Path

import psutil

_UNLIMITED = 1 << 60  # version 1 writes a huge number where there is no limit


def resident_bytes() -> int:
    """What this process holds now."""
    return int(psutil.Process().memory_info().rss)


def available_bytes(root: Path = Path("/")) -> int:
    """What it may take beyond that; the smallest of all limits.

    Args:
        root: where ``proc`` and ``sys`` are mounted.
    """
    free = int(psutil.virtual_memory().available)
    return max(0, min([free, *_group_rooms(root)]))


def _group_rooms(root: Path) -> list[int]:
    """Room left in each memory control group that this process is in."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    rooms: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            mount, limit, usage = (
                root / "sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        else:
            continue
        here = mount / path.lstrip("/")
        # in a container the path is often that of the host; what is mounted then is the group itself
        for folder in (here, *here.parents):
            room = _room(folder, limit, usage)
            if room is not None:
                rooms.append(room)
            if folder == mount:
                break
    return rooms


def _room(folder: Path, limit: str, usage: str) -> int | None:
    try:
        most = (folder / limit).read_text(encoding="utf-8").strip()
        used = int((folder / usage).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if most == "max" or int(most) >= _UNLIMITED:
        return None
    return int(most) - used + _reclaimable(folder)


def _reclaimable(folder: Path) -> int:
    """Cached files count as used and are given up on demand."""
    try:
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    values = dict(line.split(maxsplit=1) for line in lines if " " in line)
    return int(values.get("total_inactive_file") or values.get("inactive_file") or 0)
