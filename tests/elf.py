"""Reads the dynamic symbols and needed libraries of a 64-bit little-endian ELF file."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

DT_NEEDED = 1
SHT_DYNAMIC, SHT_DYNSYM = 6, 11
SHT_GNU_VERNEED, SHT_GNU_VERSYM = 0x6FFFFFFE, 0x6FFFFFFF
STB_WEAK = 2


class Symbol(NamedTuple):
    name: str
    defined: bool
    weak: bool
    version: str  # such as GLIBC_2.34; "" without one


class Section(NamedTuple):
    type: int
    offset: int
    size: int
    link: int
    info: int


class Elf:
    def __init__(self, path: Path):
        self.data = path.read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
        (offset,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        self.sections = []
        for i in range(count):
            fields = struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size)
            self.sections.append(Section(fields[1], *fields[4:8]))

    def section(self, type: int) -> Section | None:
        return next((s for s in self.sections if s.type == type), None)

    def string(self, table: int, offset: int) -> str:
        start = self.sections[table].offset + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def needed(self) -> list[str]:
        """The libraries that this one asks for."""
        section = self.section(SHT_DYNAMIC)
        entries = struct.iter_unpack("<qQ", self._bytes(section))
        return [self.string(section.link, v) for tag, v in entries if tag == DT_NEEDED]

    def symbols(self) -> list[Symbol]:
        section = self.section(SHT_DYNSYM)
        versions = self._versions()
        result = []
        for i, (name, info, _, index, _, _) in enumerate(
            struct.iter_unpack("<IBBHQQ", self._bytes(section))
        ):
            if name:
                result.append(
                    Symbol(
                        self.string(section.link, name),
                        defined=index != 0,
                        weak=info >> 4 == STB_WEAK,
                        version=versions.get(i, ""),
                    )
                )
        return result

    def _bytes(self, section: Section) -> bytes:
        return self.data[section.offset : section.offset + section.size]

    def _versions(self) -> dict[int, str]:
        """The version each symbol (by number) is wanted in."""
        need = self.section(SHT_GNU_VERNEED)
        table = self.section(SHT_GNU_VERSYM)
        if need is None or table is None:
            return {}
        names = {}
        at = need.offset
        for _ in range(need.info):
            _, count, _, first, following = struct.unpack_from("<HHIII", self.data, at)
            aux = at + first
            for _ in range(count):
                _, _, other, name, skip = struct.unpack_from("<IHHII", self.data, aux)
                names[other] = self.string(need.link, name)
                aux += skip
            at += following
        wanted = struct.iter_unpack("<H", self._bytes(table))
        return {i: names[v] for i, (v,) in enumerate(wanted) if v in names}
