"""Damaged and hostile files for the readers, each made from its number alone.

A valid file of every kind is written, then changed: bits, lengths, headers, names, fields, archives, announced sizes.
`CANARY` stands in the records, in the ids of persons, in the names of columns that a table without a header line has, and in
names of members and sub-folders. No error may repeat it.
"""

from __future__ import annotations

import datetime
import gzip
import importlib.util
import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import published_files
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

CANARY = "Zq7Canary"
IMAGES = 'name = "own"\nshape = [1, 6, 5]\nclasses = ["cat", "dog"]\nrecords = 12\n'
TABLE = (
    'name = "own"\nshape = [5]\nclasses = ["no", "yes"]\nrecords = 30\nlow = -1\nhigh = 1\nlabel = "buys"\n'
    'augmentation = []\n[[columns]]\nname = "age"\nlow = 0\nhigh = 100\ninteger = true\n'
    '[[columns]]\nname = "town"\ncategories = ["Bonn", "Rome", "Oslo"]\n'
    '[[columns]]\nname = "size"\ncategories = ["S", "M", "L"]\nordinal = true\n'
)
PERSONS = 'unit = "note"\nunits = 5\nunit_records = 3\n'
NUMBERS = (0, 1, 2, 3, 7, 8, 64, 65, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**24, 2**30, 2**31 - 1, 2**31, 2**32 - 1)


@dataclass(frozen=True)
class Case:
    """What one number makes: the data, its schema, and the label column where the kind needs one."""

    kind: str
    path: Path
    schema: Path
    label: str | None = None
    unit: str | None = None


def chance(number: int) -> random.Random:
    return random.Random(f"limbeck fuzz {number}")


# Changes of bytes


def changed(data: bytes, rng: random.Random) -> bytes:
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not content:
            break
        place = rng.randrange(len(content))
        change = rng.randrange(8)
        if change == 0:
            content[place] ^= 1 << rng.randrange(8)
        elif change == 1:
            content[place] = rng.randrange(256)
        elif change == 2:
            del content[place:]
        elif change == 3:
            del content[place : place + rng.choice((1, 2, 4, 16, 100))]
        elif change == 4:
            content[place:place] = content[max(0, place - rng.choice((1, 4, 32, 200))) : place]
        elif change == 5:
            content[place:place] = rng.randbytes(rng.choice((1, 2, 8, 64)))
        elif change == 6:
            form, number = rng.choice((">I", "<I", "<H", ">H", "<Q", ">Q")), rng.choice(NUMBERS)
            content[place : place + struct.calcsize(form)] = struct.pack(
                form, number % (1 << 8 * struct.calcsize(form))
            )
        else:
            other = rng.randrange(len(content))
            length = rng.choice((1, 4, 20))
            content[place : place + length], content[other : other + length] = (
                content[other : other + length],
                content[place : place + length],
            )
    return bytes(content)


# Persons


def person(rng: random.Random) -> str:
    """An id: mostly one of a few, sometimes one that is hard to read."""
    odd = ("", " ", "nan", "007", "1e400", "9" * 5000, "\u0301" * 3000, "\0", "\ufeff", "\ud7ff", "e\u0301")
    return CANARY + str(rng.randrange(5)) if rng.random() < 0.8 else rng.choice(odd)


def by_person(schema: Path, text: str, rng: random.Random) -> None:
    schema.write_text((PERSONS if rng.random() < 0.5 else "") + text)


# Tables


def rows(count: int, rng: random.Random) -> list[list[str]]:
    towns, sizes = ("Bonn", "Rome", "Oslo", "Lima"), ("S", "M", "L", "")
    return [
        [rng.choice(("no", "yes")), str(rng.randrange(0, 99)), rng.choice(towns), rng.choice(sizes), person(rng)]
        for _ in range(count)
    ]


def csv_text(rng: random.Random) -> bytes:
    body = rows(30, rng)
    header = ["buys", "age", "town", "size", "note"]
    nasty = ("nan", "inf", "1e400", "9" * 5000, "1e-320", "\0", '"', "\r", "", "0x10", "1_0", "\ufeff", "٣")
    change = rng.randrange(14)
    if change == 0:
        header = body.pop()  # no header line
    elif change == 1:
        header = [f"{CANARY}{place}" for place in range(rng.choice((3, 60_000, 1_000_000)))]
    elif change == 2:
        body[3][rng.choice((1, 2, 4))] = rng.choice(("x", "7", "\u0301")) * rng.choice((131_073, 1_000_000))
    elif change == 3:
        body[0][0] = CANARY
    elif change == 4:
        body += [["yes"]] * 5000
    elif change == 5:
        header[2] = header[1]
    elif change == 6:
        body[2][1] = rng.choice(nasty)
    elif change == 7:
        body[2][rng.randrange(5)] = '"' + "y" * 50
    elif change == 8:
        header = [f"c{place}" for place in range(20_000)] + header
        body += [["1"]] * 3000
    elif change == 9:
        body = []
    elif change == 10:
        body[1] = body[1] * 4000
    data = "\n".join(",".join(row) for row in [header, *body]).encode()
    if change == 11:
        data = data.replace(b"\n", b"\r")
    if change == 12:
        data = data.decode().encode("utf-16")
    return changed(data, rng) if change == 13 or rng.random() < 0.5 else data


def table_case(folder: Path, rng: random.Random) -> Case:
    schema = folder / "schema.toml"
    by_person(schema, TABLE, rng)
    path = folder / "own.csv"
    path.write_bytes(csv_text(rng))
    return Case("csv", path, schema, "buys", "note")


# Schemas

VALUES = (
    "nan", "inf", "-inf", "1e400", "true", '"5"', "[1]", "0", "-3", "2.5", "1" + "0" * 5000, "0x" + "F" * 5000, "1979-05-27",
    "{a = 1}", "[]", '""', '"a\\u0000b"', "[nan]", "[[1]]", "1e308", "-1e308", "9223372036854775808", "[1, 6, 5, 1]", "[6, 5]",
    "07:32:00", "[true]", "[1, 100000, 100000]", "[99999999999]", "1e-320",
)  # fmt: skip


def toml_case(folder: Path, rng: random.Random) -> Case:
    case = table_case(folder, random.Random(1)) if rng.random() < 0.5 else npz_plain(folder)
    lines = case.schema.read_text().splitlines()
    change = rng.randrange(8)
    if change < 4:
        for _ in range(rng.choice((1, 1, 2))):
            place = rng.choice([place for place, line in enumerate(lines) if "=" in line])
            lines[place] = f"{lines[place].split('=')[0]}= {rng.choice(VALUES)}"
    elif change == 4:
        lines.insert(
            rng.randrange(len(lines)), rng.choice(("x = 1", "[columns]", "[[columns]]", "name.x = 1", "[a.b]"))
        )
    elif change == 5:
        deep = rng.choice(("[", "{a="))
        lines.insert(0, rng.choice(("x = " + deep * 50_000, "a." * 300_000 + "b = 1", "x = '" + "a" * 3_000_000)))
    elif change == 6:
        lines.pop(rng.randrange(len(lines)))
    text = ("\n".join(lines) + "\n").encode()
    case.schema.write_bytes(changed(text, rng) if change == 7 else text)
    return Case("toml", case.path, case.schema, case.label)


# IDX


def idx_bytes(array: np.ndarray[Any, Any]) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def zeros(size: int) -> bytes:
    """A gzip file of so many zeros, quickly: a member of 16 MB over and over."""
    member = gzip.compress(bytes(1 << 24), 1)
    return member * (size >> 24) + gzip.compress(bytes(size % (1 << 24)), 1)


def idx_case(folder: Path, rng: random.Random) -> Case:
    schema = folder / "schema.toml"
    schema.write_text(IMAGES)
    packed = rng.random() < 0.5
    files = {
        "images-idx3-ubyte": idx_bytes(np.arange(12 * 30).reshape(12, 6, 5) % 251),
        "labels-idx1-ubyte": idx_bytes(np.arange(12) % 2),
    }
    target = rng.choice(list(files))
    change, bomb = rng.randrange(7), False
    if change == 0:
        content = bytearray(files[target])
        content[rng.randrange(16 if "images" in target else 8)] = rng.choice((0, 1, 8, 9, 11, 13, 14, 64, 65, 200, 255))
        files[target] = bytes(content)
    elif change == 1:
        rank = rng.choice((0, 1, 2, 3, 4, 65, 255))
        sides = [rng.choice((0, 1, 2, 12, 2**16, 2**31, 2**32 - 1)) for _ in range(rank)]
        files[target] = struct.pack(f">HBB{rank}I", 0, rng.choice((8, 9, 12, 14)), rank, *sides) + files[target][16:]
    elif change == 2:
        files["labels-idx1-ubyte"] = idx_bytes(np.zeros((12, 2)))
    elif change == 3 and rng.random() < 0.3:
        bomb = True
        side = rng.choice((2_000_000, 100_000_000))
        files["images-idx3-ubyte"] = gzip.compress(struct.pack(">HBB3I", 0, 8, 3, side, 6, 5)) + zeros(side * 30)
        files["labels-idx1-ubyte"] = gzip.compress(struct.pack(">HBBI", 0, 8, 1, side)) + zeros(side)
    else:
        files[target] = changed(files[target], rng)
    for name, content in files.items():
        data = gzip.compress(content) if packed and not bomb else content
        if packed and not bomb and rng.random() < 0.5:
            data = changed(data, rng)
        (folder / f"train-{name}{'.gz' if packed or bomb else ''}").write_bytes(data)
    path = next(folder.glob("train-images*"))
    return Case("idx.gz" if packed or bomb else "idx", path, schema)


# NumPy archives


def npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def headed(text: str, body: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    return (
        b"\x93NUMPY"
        + bytes(version)
        + struct.pack("<H" if version == (1, 0) else "<I", len(text))
        + text.encode()
        + body
    )


def npz_plain(folder: Path) -> Case:
    schema, path = folder / "schema.toml", folder / "own.npz"
    schema.write_text(IMAGES)
    np.savez(path, x=np.arange(360, dtype=np.uint8).reshape(12, 6, 5), y=np.arange(12) % 2)
    return Case("npz", path, schema)


def npz_persons(folder: Path, rng: random.Random) -> tuple[Case, dict[str, bytes]]:
    """A case with persons, and the members of its archive."""
    case = npz_plain(folder)
    by_person(case.schema, IMAGES, rng)
    ids: Any = rng.choice(
        (
            np.array([person(rng) for _ in range(12)]),
            np.array([person(rng).encode("utf-8", "surrogatepass") for _ in range(12)]),
            np.arange(12) % 5,
            np.array([0.5, np.nan, np.inf] * 4),
            np.zeros(12, "M8[ns]"),
            np.zeros((12, 2)),
            np.zeros(11),
        )
    )
    x, y = np.arange(360, dtype=np.float32).reshape(12, 6, 5), np.arange(12) % 2
    return Case("npz", case.path, case.schema, None, "note"), {"x.npy": npy(x), "y.npy": npy(y), "note.npy": npy(ids)}


def npz_case(folder: Path, rng: random.Random) -> Case:
    case, members = npz_persons(folder, rng)
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    change = rng.randrange(6)
    if change == 0:
        name = rng.choice(("x.npy", "y.npy", "note.npy"))
        members[rng.choice((name[0], f"{CANARY}.npy", name.upper(), f"a/{name}"))] = members.pop(name)
    elif change == 1:
        name = rng.choice(list(members))
        members[name] = changed(members[name], rng)
    elif change == 2:
        members[rng.choice(list(members))] = rng.choice((b"", CANARY.encode(), npy(np.array(7)), b"\x93NUMPY\x01\x00"))
    elif change == 3:
        members["x.npy"] = npy(np.zeros(rng.choice((30_000_000, 300_000_000)), np.uint8).reshape(-1, 6, 5))
        members["y.npy"] = npy(np.zeros(len(members["x.npy"]) // 30, np.uint8))
        method = zipfile.ZIP_DEFLATED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    data = bytearray(buffer.getvalue())
    if change == 4:  # a central or a local entry: its flags, its method, its sizes
        mark, fields = rng.choice(
            ((b"PK\1\2", (6, 8, 10, 16, 20, 24, 28, 30, 42)), (b"PK\3\4", (4, 6, 8, 14, 18, 22, 26)))
        )
        start = data.find(mark) + rng.choice(fields)
        data[start : start + 2] = struct.pack("<H", rng.choice(NUMBERS) % 65536)
    case.path.write_bytes(changed(bytes(data), rng) if change == 5 else bytes(data))
    return case


SHAPES = (
    "(12, 6, 5)", "(1000000000, 6, 5)", "(-1, 6, 5)", "(9223372036854775807, 2, 5)", "()", "(12,)", "(0, 6, 5)", "12",
    "(" + "1, " * 70 + ")", "(" * 300, "(True, 6, 5)", "[12, 6, 5]", "(10**9,)", "None", "(99999999999999999999999, 1)",
)  # fmt: skip
TYPES = (
    "'<f4'", "'|O'", "'<U0'", "'|V16'", "'<U2000000'", "'<M8[ns]'", "'(2,)i4'", "'<c16'", "'<f2'", "'<f16'", "'|b1'", "'>i8'",
    f"[('{CANARY}', '<f4')]", "'|u1'", "'<u8'", "3", "'<m8'", "'<i99'", "[[[]]]", "'<U1'",
)  # fmt: skip


def npy_case(folder: Path, rng: random.Random) -> Case:
    """A whole archive with an array whose own header is odd."""
    case, members = npz_persons(folder, rng)
    name = rng.choice(("x.npy", "x.npy", "y.npy", "note.npy"))
    shape = rng.choice(SHAPES) if rng.random() < 0.6 else ("(12, 6, 5)" if name == "x.npy" else "(12,)")
    text = (
        f"{{'descr': {rng.choice(TYPES)}, 'fortran_order': {rng.choice(('False', 'True', '1'))}, 'shape': {shape}, }}\n"
    )
    if rng.random() < 0.1:
        text = rng.choice(("", "{", "{}", "None", "[1]", text * 3, text + " " * 70_000, "'" + CANARY, "{'a': 1}"))[
            :60_000
        ]
    version = rng.choice(((1, 0), (1, 0), (2, 0), (3, 0), (9, 9)))
    members[name] = headed(text, members[name][128:] * rng.choice((1, 1, 2)), version)
    with zipfile.ZipFile(case.path, "w") as archive:
        for entry, data in members.items():
            archive.writestr(entry, data)
    return Case("npy", case.path, case.schema, None, "note")


# Parquet


def odd_columns(rng: random.Random) -> dict[str, Any]:
    count = 30
    dates = pa.array([rng.choice((0, 2**31 - 1, -(2**31), 11_000)) for _ in range(count)], pa.int32()).cast(pa.date32())
    long = pa.array([rng.choice((0, 2**62, -(2**62), 10**18)) for _ in range(count)], pa.int64())
    texts = pa.array(["a"] * count)
    broken = pa.StringArray.from_buffers(
        count, texts.buffers()[1], pa.py_buffer(rng.choice((b"\xff", b"\xc3", b"a")) * count)
    )
    return rng.choice(
        (
            {"age": dates},
            {"age": long.cast(pa.timestamp("ns"))},
            {"town": long.cast(pa.timestamp("us", "Mars/Olympus"))},
            {"town": long.cast(pa.timestamp("ms"))},
            {"age": long.cast(pa.duration("ns"))},
            {"town": broken},
            {"buys": broken},
            {"town": pa.array([[1, 2]] * count)},
            {"town": pa.array([{"a": CANARY}] * count)},
            {"age": pa.array([datetime.time(1, 2, 3)] * count)},
            {"age": pa.array([None] * count)},
            {"age": pa.array([10**30] * count, pa.decimal128(38, 0))},
            {"age": pa.array([1e308, -1e308, float("nan")] * 10)},
            {"size": pa.array([b"\x00\xff"] * count)},
            {"size": pa.array([True, False, None] * 10)},
            {"buys": pa.array([0, 1, 5] * 10)},
            {"buys": pa.array([CANARY] * count)},
            {"age": pa.array([b"12345678"] * count, pa.binary(8))},
            {"note": broken},
            {"note": dates},
            {"note": long.cast(pa.timestamp("ns"))},
            {"note": long.cast(pa.timestamp("us", "Mars/Olympus"))},
            {"note": pa.array([10**30, None, -1] * 10, pa.decimal128(38, 2))},
            {"note": pa.array([{"a": CANARY}] * count)},
            {"note": pa.array([rng.randbytes(16) for _ in range(count)], pa.binary(16))},
            {"note": pa.array([b"\xff" * 9, None, b""] * 10)},
            {"note": pa.array([None] * count)},
            {"note": pa.array([1, 2, 3] * 10).dictionary_encode()},
            {"note": pa.array([True, None, False] * 10)},
            {"note": pa.array([1.0, float("nan"), 1e308] * 10)},
        )
    )


def parquet_table(rng: random.Random) -> tuple[Any, dict[str, Any]]:
    body = rows(30, rng)
    names = ["buys", "age", "town", "size", "note"]
    columns: dict[str, Any] = {name: pa.array([row[place] for row in body]) for place, name in enumerate(names)}
    columns["age"] = pa.array([int(row[1]) for row in body])
    options: dict[str, Any] = {"compression": rng.choice(("snappy", "zstd", "none", "gzip"))}
    change = rng.randrange(8)
    if change < 3:
        columns.update(odd_columns(rng))
    elif change == 3:
        arrays, listed = [*columns.values(), columns["age"]], [*columns, rng.choice(names)]
        return pa.Table.from_arrays(arrays, listed), options
    elif change == 4:
        count = rng.choice((1000, 300_000))
        columns = {name: pa.array(["yes" if name == "buys" else "x" * rng.choice((1, 100_000))] * 1) for name in names}
        columns = {
            name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), column)
            for name, column in columns.items()
        }
    elif change == 5:
        columns = {f"{CANARY}{place}": column for place, column in enumerate(columns.values())}
    elif change == 6:
        options |= {"use_dictionary": False, "column_encoding": {"note": "DELTA_BYTE_ARRAY"}}
    return pa.table(columns), options


def parquet_case(folder: Path, rng: random.Random) -> Case:
    schema, path = folder / "schema.toml", folder / "own.parquet"
    if rng.random() < 0.35:
        by_person(schema, IMAGES, rng)
        pictures: list[Any] = [{"bytes": png(rng, 5, 6), "path": CANARY} for _ in range(12)]
        if rng.random() < 0.5:
            place = rng.randrange(12)
            odd = (changed(pictures[place]["bytes"], rng), None, b"", CANARY.encode())
            pictures[place] = rng.choice(({"bytes": rng.choice(odd), "path": None}, None))
        labels = rng.choice(([0, 1] * 6, ["cat", "dog"] * 6, [0, None] * 6, [CANARY] * 12, [0.5] * 12, [[1]] * 12))
        columns = {rng.choice(("image", "img", CANARY)): pictures, "label": labels}
        content, options = pa.table(columns | {"note": [person(rng) for _ in range(12)]}), {}
        if rng.random() < 0.3:
            content = content.set_column(2, "note", [pa.array([[CANARY]] * 12)])
        label = None
    else:
        by_person(schema, TABLE, rng)
        content, options = parquet_table(rng)
        label = "buys"
    pq.write_table(content, path, **options)
    data = path.read_bytes()
    change = rng.randrange(4)
    if change == 0:
        data = changed(data, rng)
    elif change == 1:  # the footer: its length stands before the last four bytes
        start = max(0, len(data) - 8 - struct.unpack("<I", data[-8:-4])[0])
        data = data[:start] + changed(data[start:-8], rng) + data[-8:]
    path.write_bytes(data)
    return Case("parquet", path, schema, label, "note")


# Images


def png(rng: random.Random, width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((height, width), rng.randrange(255), np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()


def resized_png(data: bytes, width: int, height: int) -> bytes:
    """The header announces another size, with the right checksum."""
    chunk = b"IHDR" + struct.pack(">II", width, height) + data[24:29]
    return data[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + data[33:]


def picture(rng: random.Random, form: str) -> bytes:
    mode = rng.choice(("L", "RGB", "RGBA", "P", "1", "CMYK", "I;16", "LA", "F"))
    image = Image.new("L", (5, 6), rng.randrange(255))
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = rng.choice((0, 1, 3, 6, 8, 9, 6000))
    try:
        image.convert(mode).save(buffer, format=form, exif=exif)
    except (OSError, ValueError, KeyError):  # this format has no such mode, or no EXIF
        buffer = io.BytesIO()
        image.save(buffer, format=form)
    return buffer.getvalue()


def size_of_other(rng: random.Random) -> str:
    """Lines of a schema that brings pictures of any size to its own; sometimes with a line that it must refuse."""
    lines = rng.choice(("fit", "fill", "crop", "crop", "zoom"))
    return f'resize = "{lines}"\n' + rng.choice(("", "", "low = 0\nhigh = 65535\n", "low = -1024\nhigh = 3071\n"))


def any_picture(rng: random.Random) -> bytes:
    """Of any size, mode and number of pages."""
    form = rng.choice(("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"))
    wide, high = (rng.choice((1, 2, 5, 6, 40, 300, 10_000)) for _ in range(2))
    image = Image.new("L", (wide, min(high, 100_000 // wide + 1)), rng.randrange(255))
    mode = rng.choice(("L", "RGB", "RGBA", "P", "1", "CMYK", "I;16", "LA", "F", "YCbCr", "LAB"))
    options: dict[str, Any] = {"append_images": [image, image], "save_all": True} if rng.random() < 0.3 else {}
    exif = Image.Exif()
    exif[0x0112] = rng.choice((0, 2, 5, 7, 65_535))
    for picture, others in ((image, {**options, "exif": exif}), (image, {})):
        buffer = io.BytesIO()
        try:
            (picture.convert(mode) if others else picture).save(buffer, format=form, **others)
            return buffer.getvalue()
        except (OSError, ValueError, KeyError, TypeError):  # this format has no such mode, no pages or no EXIF
            continue
    return buffer.getvalue()


def sizes_case(folder: Path, rng: random.Random) -> Case:
    schema, root = folder / "schema.toml", folder / "own"
    schema.write_text(size_of_other(rng) + IMAGES)
    for name in ("cat", "dog"):
        (root / name).mkdir(parents=True)
        for place in range(3):
            data = any_picture(rng)
            change = rng.randrange(6)
            if change == 0:
                data = changed(data, rng)
            elif change == 1 and rng.random() < 0.3:
                sides = (1, 0, 12_000, 60_000, 2**31 - 1)
                data = resized_png(png(rng, 5, 6), rng.choice(sides), rng.choice(sides))
            (root / name / f"{place}.png").write_bytes(data)
    return Case("sizes", root, schema)


def dicom_bytes(rng: random.Random, whole: bool) -> bytes:
    import dicom_files

    kind = rng.choice((np.uint8, np.uint16, np.int16))
    shape = rng.choice(((6, 5), (6, 5), (20, 30), (2, 6, 5), (6, 5, 3)))
    tags: dict[str, Any] = {"PatientName": CANARY}
    if whole:
        return dicom_files.made(
            np.full((6, 5), rng.randrange(255), np.uint16), RescaleIntercept=-7, RescaleSlope=1, **tags
        )
    if rng.random() < 0.5:
        tags |= {"RescaleSlope": rng.choice((1, 0, -2, "1e300")), "RescaleIntercept": rng.choice((-1024, 0, 7.5))}
    tags["PhotometricInterpretation"] = rng.choice(
        ("MONOCHROME1", "MONOCHROME2", "RGB", "YBR_FULL", "PALETTE COLOR", CANARY[:16])
    )
    if rng.random() < 0.3:
        names = ("Rows", "Columns", "SamplesPerPixel", "BitsStored", "HighBit", "BitsAllocated", "NumberOfFrames")
        tags[rng.choice(names)] = rng.choice((0, 1, 2, 3, 7, 12, 16, 32, 64, 65_535))
    data = dicom_files.made((np.arange(int(np.prod(shape))) * 3 % 120).astype(kind).reshape(shape), **tags)
    if rng.random() < 0.2:
        syntaxes = (
            "1.2.840.10008.1.2.4.50",
            "1.2.840.10008.1.2.4.80",
            "1.2.840.10008.1.2.5",
            "1.2.840.10008.1.2.1.99",
            "1.2.3",
        )
        data = dicom_files.with_syntax(data, rng.choice(syntaxes))
    return changed(data, rng) if rng.random() < 0.6 else data


def dicom_case(folder: Path, rng: random.Random) -> Case:
    """Five files that are whole, and one that may not be."""
    schema, root = folder / "schema.toml", folder / "own"
    schema.write_text((size_of_other(rng) if rng.random() < 0.7 else "") + IMAGES)
    there = importlib.util.find_spec("pydicom") is not None
    for place in range(6):
        into = root / ("cat", "dog")[place % 2]
        into.mkdir(parents=True, exist_ok=True)
        (into / f"{place}.dcm").write_bytes(dicom_bytes(rng, whole=place > 0) if there else b"")
    return Case("dicom", root, schema)


def folder_case(folder: Path, rng: random.Random) -> Case:
    schema, root = folder / "schema.toml", folder / "own"
    by_person(schema, IMAGES, rng)
    level = rng.choice((".", ".", f"{CANARY}1", f"{CANARY} 2"))
    form = rng.choice(("PNG", "PNG", "JPEG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"))
    for name in ("cat", "dog"):
        (root / name / level).mkdir(parents=True)
        for place in range(3):
            (root / name / level / f"{place}.{form.lower()}").write_bytes(picture(rng, form))
    target = root / rng.choice(("cat", "dog")) / level / f"0.{form.lower()}"
    change = rng.randrange(10)
    if change == 0:
        (root / CANARY).mkdir()
    elif change == 1:
        sides = (5, 6, 0, 60_000, 12_000, 2**31 - 1)
        target.write_bytes(resized_png(png(rng, 5, 6), rng.choice(sides), rng.choice(sides)))
    elif change == 2:
        target.write_bytes(rng.choice((b"", CANARY.encode(), b"%!PS-Adobe-3.0 EPSF-3.0\n", b"P5 5 6 255\n", b"GIF89a")))
    elif change == 3:
        target.unlink()
        target.mkdir()
    else:
        target.write_bytes(changed(target.read_bytes(), rng))
    return Case(f"images {form}", root, schema, None, "note")


def published_case(folder: Path, rng: random.Random) -> Case:
    """A published set of which one file is damaged; its schema was drafted before."""
    make, label = rng.choice(list(published_files.SETS.items()))
    root = folder / "own"
    root.mkdir()
    make(root)
    schema = published_files.schema_of(folder / "schema.toml", root, label)
    target = rng.choice(sorted(path for path in root.rglob("*") if path.is_file()))
    change = rng.randrange(8)
    if change == 0:
        target.unlink()
    elif change == 1:
        target.write_bytes(rng.choice((b"", CANARY.encode(), f"2\n{CANARY} Male\n{CANARY} 1\n".encode(), zeros(3000))))
    else:
        target.write_bytes(changed(target.read_bytes(), rng))
    return Case(f"published {make.__name__}", root, schema, label)


MAKERS: tuple[Callable[[Path, random.Random], Case], ...] = (
    table_case, toml_case, idx_case, idx_case, npz_case, npy_case, parquet_case, parquet_case, folder_case, folder_case,
    sizes_case, sizes_case, dicom_case, published_case,
)  # fmt: skip


def make(number: int, folder: Path) -> Case:
    """The case of this number, written into an empty folder."""
    rng = chance(number)
    return MAKERS[number % len(MAKERS)](folder, rng)
