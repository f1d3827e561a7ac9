"""Simulates a faulty card for a hub process. A preloaded C library makes system calls fail while certain files
exist."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fakes.programs import need

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char *switch_of(const char *mood, char *path) {
    const char *folder = getenv("CARD_SWITCHES");
    snprintf(path, 4096, "%s/%s", folder ? folder : "/nowhere", mood);
    return path;
}

static int is_on(const char *mood) {
    char path[4096];
    int kept = errno, found = access(switch_of(mood, path), F_OK) == 0;
    errno = kept;
    return found;
}

static int is_on_card(const char *path) {
    const char *folder = getenv("CARD_FOLDER");
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int refuse(int number) { errno = number; return -1; }

static void count(void) {
    char path[4096];
    int (*really)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int descriptor = really(switch_of("syncs", path), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor >= 0) {
        if (write(descriptor, "s", 1) < 0) abort();
        close(descriptor);
    }
}

int fdatasync(int descriptor) {
    int (*really)(int) = dlsym(RTLD_NEXT, "fdatasync");
    count();
    if (is_on("slow")) usleep(600000);
    return is_on("EIO") ? refuse(EIO) : really(descriptor);
}

int fsync(int descriptor) {
    int (*really)(int) = dlsym(RTLD_NEXT, "fsync");
    return is_on("EIO") ? refuse(EIO) : really(descriptor);
}

static ssize_t faulty_pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    static int calls = 0;
    ssize_t (*really)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
    if (is_on("ENOSPC")) return refuse(ENOSPC);
    if (is_on("EROFS")) return refuse(EROFS);
    if (is_on("brim")) return calls++ % 2 ? refuse(ENOSPC) : really(descriptor, data, (length + 1) / 2, offset);
    if (is_on("short")) return really(descriptor, data, (length + 1) / 2, offset);
    return really(descriptor, data, length, offset);
}
ssize_t pwrite(int d, const void *b, size_t n, off_t o) { return faulty_pwrite(d, b, n, o); }
ssize_t pwrite64(int d, const void *b, size_t n, off_t o) { return faulty_pwrite(d, b, n, o); }

static int faulty_open(const char *path, int flags, mode_t mode) {
    int (*really)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    int writes = (flags & (O_CREAT | O_TRUNC)) || (flags & O_ACCMODE) != O_RDONLY;
    return writes && is_on_card(path) && is_on("EROFS") ? refuse(EROFS) : really(path, flags, mode);
}
#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
    return faulty_open(path, flags, mode); }
OPEN(open)
OPEN(open64)

static int faulty_ftruncate(int descriptor, off_t length) {
    int (*really)(int, off_t) = dlsym(RTLD_NEXT, "ftruncate64");
    return is_on("EROFS") ? refuse(EROFS) : really(descriptor, length);
}
int ftruncate(int descriptor, off_t length) { return faulty_ftruncate(descriptor, length); }
int ftruncate64(int descriptor, off_t length) { return faulty_ftruncate(descriptor, length); }

#define NAMED(name, parameters, arguments) int name parameters { \
    int (*really) parameters = dlsym(RTLD_NEXT, #name); \
    return is_on_card(path) && is_on("EROFS") ? refuse(EROFS) : really arguments; }
NAMED(rename, (const char *path, const char *other), (path, other))
NAMED(link, (const char *path, const char *other), (path, other))
NAMED(unlink, (const char *path), (path))
"""


class Card:
    """The data directory that the hub's process uses, and the faults of its card.

    Faults: `slow` (every fdatasync takes 600 ms longer), `EIO` (every sync fails), `ENOSPC` (every write fails),
    `brim` (half of a write succeeds and later ones fail), `short` (writes are accepted in parts), `EROFS` (every
    change fails).
    """

    def __init__(self, folder: Path) -> None:
        self._switches = folder / "switches"
        self._switches.mkdir()
        self.environment = {
            "LD_PRELOAD": str(_compile(folder)),
            "CARD_SWITCHES": str(self._switches),
            "CARD_FOLDER": str(folder / "data"),
        }

    @property
    def syncs(self) -> int:
        counted = self._switches / "syncs"
        return counted.stat().st_size if counted.exists() else 0

    def switch_on(self, mood: str) -> None:
        (self._switches / mood).touch()

    def switch_off(self, mood: str) -> None:
        (self._switches / mood).unlink()


def _compile(folder: Path) -> Path:
    compiler = need("cc")
    source, library = folder / "card.c", folder / "card.so"
    source.write_text(SOURCE)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    made = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    if made.returncode != 0:
        pytest.skip(f"the C compiler cannot build the card that misbehaves: {made.stderr.strip()[:200]}")
    return library
