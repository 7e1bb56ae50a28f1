"""Which functions an ELF object expects from elsewhere.

The layout is that of the System V ABI, chapter 4 (64-bit, little-endian): a header, a table of sections, and in one
of them a table of symbols whose names stand in the section it links to.
"""

from __future__ import annotations

import struct

_SYMBOL_TABLE = 2  # sh_type SHT_SYMTAB
_UNDEFINED = 0  # st_shndx SHN_UNDEF
_WEAK = 2  # binding STB_WEAK
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, alignment, entry size


def is_elf(object_code: bytes) -> bool:
    """Whether this is a 64-bit little-endian ELF file, as on Linux."""
    return object_code[:6] == b"\x7fELF\x02\x01"


def undefined_symbols(object_code: bytes) -> list[str]:
    """The symbols that whoever loads the object must provide, in order of the table; weak ones may stay absent.

    Raises ValueError for anything but an ELF object, and for one that is cut short.
    """
    if not is_elf(object_code):
        raise ValueError("not a 64-bit little-endian ELF object")
    try:
        return _undefined(object_code)
    except (struct.error, IndexError) as error:
        raise ValueError(f"ELF object of {len(object_code)} bytes is damaged: {error}") from None


def _undefined(code: bytes) -> list[str]:
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [_SECTION.unpack_from(code, table + i * size) for i in range(count)]
    names: list[str] = []
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        strings = sections[link][4]
        # Symbol 0 is a placeholder without a name.
        for at in range(offset + _SYMBOL.size, offset + length, _SYMBOL.size):
            name, info, _, section, _, _ = _SYMBOL.unpack_from(code, at)
            if section == _UNDEFINED and info >> 4 != _WEAK:
                start = strings + name
                names.append(code[start : code.index(b"\0", start)].decode())
    return names
