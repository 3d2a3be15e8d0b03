"""Describes the machine, and the program that is measured on it."""

import json
import os
import pathlib
import platform
import re
import subprocess


def _output(command):
    """What a command prints; nothing where there is no such command or it fails."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8", errors="replace",
                              env=dict(os.environ, LC_ALL="C"), check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _lscpu():
    """{field: value} as lscpu prints them."""
    try:
        entries = json.loads(_output(["lscpu", "-J"]))["lscpu"]
    except (ValueError, KeyError):
        return {}
    fields = {}
    while entries:
        entry = entries.pop(0)
        fields.setdefault(entry["field"].rstrip(":"), entry.get("data"))
        entries += entry.get("children", [])  # newer versions nest
    return fields


def cpu_name():
    """The CPU's name for itself."""
    return _lscpu().get("Model name") or platform.processor() or "unknown CPU"


def _memory():
    """In GiB, as text."""
    try:
        found = re.search(r"^MemTotal:\s+(\d+) kB", open("/proc/meminfo").read(), re.MULTILINE)
    except OSError:
        found = None
    return f"{int(found[1]) / 2 ** 20:.1f} GiB" if found else "unknown"


def _build(program):
    """{entry: text} of the CMake cache, where a program lies in its build folder; else nothing."""
    cache = pathlib.Path(program).resolve().parent / "CMakeCache.txt"
    try:
        text = cache.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))


def _compiler(build):
    if not build:
        return "unknown"
    lines = _output([build.get("CMAKE_CXX_COMPILER", "c++"), "--version"]).splitlines()
    return f"{lines[0] if lines else 'unknown'}, {build.get('CMAKE_BUILD_TYPE', '')} build"


def _commit(build):
    """Of the source tree of a build; "with changes" where files that git knows differ from it."""
    git = ["git", "-C", build.get("CMAKE_HOME_DIRECTORY", "")]
    name = _output([*git, "rev-parse", "HEAD"]) if build.get("CMAKE_HOME_DIRECTORY") else ""
    if not name:
        return "unknown"
    changed = _output([*git, "status", "--porcelain", "--untracked-files=no"])
    return name + (" with changes" if changed else "")


def describe(program):
    """{name: text} of the machine, and of the compiler and the commit of a program."""
    cpu = _lscpu()
    build = _build(program)
    caches = ", ".join(f"{level} {cpu[level + ' cache']}" for level in ("L1d", "L1i", "L2", "L3")
                       if cpu.get(level + " cache"))
    shape = ", ".join(f"{words}: {cpu[field]}" for field, words in (
        ("Socket(s)", "sockets"), ("Core(s) per socket", "cores of each"),
        ("Thread(s) per core", "threads of a core"), ("NUMA node(s)", "NUMA nodes"))
        if cpu.get(field))
    virtual = cpu.get("Hypervisor vendor")
    return {
        "CPU": ", ".join([cpu_name()] + [
            f"{words} {cpu[field]}" for field, words in (
                ("CPU family", "family"), ("Model", "model"), ("Stepping", "stepping"))
            if cpu.get(field)]),
        "usable threads": str(len(os.sched_getaffinity(0))) + (f"; {shape}" if shape else ""),
        "caches": caches or "unknown",
        "memory": _memory(),
        "virtual machine": f"yes, {virtual}" if virtual else "not known to be one",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}",
        "compiler": _compiler(build),
        "commit": _commit(build),
    }
