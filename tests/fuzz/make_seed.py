#!/usr/bin/env python3
"""Cuts a finished recording down to a seed for trace_fuzzer: no window, a few events of each chunk, nothing compressed,
of a ring two areas without the room behind their frames.

usage: make_seed.py FROM.vrt TO.vrt [EVENTS_PER_CHUNK]      (needs the command zstd)

The seeds of rings and samples were made with JOB_KERNELS=1 from `job_writer 3000` (VRAMTRACK_RING=1M) and
`job_writer 10` (VRAMTRACK_SAMPLE=1M), 150 events per chunk.
"""
import json
import struct
import subprocess
import sys

FILE = struct.Struct("<8sIIIIIIQQQQQQ")
RING = struct.Struct("<QQII")
FRAME = struct.Struct("<IHHIIII")
CHUNK = struct.Struct("<IIIIIIQQQ")
MAGIC, CHUNK_TYPE, RING_FLAG = 0x454D5246, 1, 4


def aligned(size):
    return (size + 7) // 8 * 8


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def frames(data, offset, end, generation):
    """(type, body, generation) of the frames up to `end`; in a ring's area of one generation only."""
    while offset + FRAME.size <= end:
        magic, kind, codec, stored, _, _, number = FRAME.unpack_from(data, offset)
        if magic != MAGIC or (generation and number != generation):
            if generation:
                return
            offset += 8
            continue
        body = data[offset + FRAME.size:offset + FRAME.size + stored]
        yield kind, subprocess.run(["zstd", "-dc"], input=body, capture_output=True, check=True).stdout if codec else body, number
        offset = aligned(offset + FRAME.size + stored)


def skip_varint(data, at):
    while data[at] & 0x80:
        at += 1
    return at + 1


def after_event(data, at):
    at = skip_varint(data, skip_varint(data, at + 1))
    mask, shift = 0, 0
    while True:
        mask |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            break
    for _ in range(mask.bit_count()):
        at = skip_varint(data, at)
    return at


def shortened(chunk, most):
    """Its first events; definitions cannot be told apart without reading them, so a chunk that begins with one stays."""
    head = list(CHUNK.unpack_from(chunk))
    at, end = CHUNK.size, CHUNK.size + head[4]
    for _ in range(most):
        if at >= end or chunk[at] >= 128:
            break
        at = after_event(chunk, at)
    if at < end and chunk[at] >= 128:
        at = end
    head[4] = at - CHUNK.size
    return CHUNK.pack(*head) + chunk[CHUNK.size:at]


def frame(kind, body, generation):
    return (FRAME.pack(MAGIC, kind, 0, len(body), len(body), crc32c(body), generation) + body).ljust(
        aligned(FRAME.size + len(body)), b"\0")


def cut(kind, body, most):
    return shortened(body, most) if kind == CHUNK_TYPE else body


def main():
    data, most = open(sys.argv[1], "rb").read(), int(sys.argv[3]) if len(sys.argv) > 3 else 150
    head = list(FILE.unpack_from(data))
    header_bytes, metadata_bytes, frames_offset = head[2], head[3], head[8]
    # Not of the machine that it was recorded on.
    told = json.loads(data[header_bytes:header_bytes + metadata_bytes].rstrip(b"\0"))
    metadata = json.dumps({key: told[key] for key in ("tool", "sample_bytes", "ring_bytes") if key in told}).encode()
    window = aligned(header_bytes + len(metadata))
    head[3], head[4], head[5], head[7] = len(metadata), 64, 1, window
    areas, ring = b"", b""
    if head[6] & RING_FLAG:
        offset, area_bytes, count, _ = RING.unpack_from(data, FILE.size)
        kept = []
        for begin in range(offset, offset + area_bytes * count, area_bytes):
            magic, *_, generation = FRAME.unpack_from(data, begin)
            if magic != MAGIC:
                continue
            parts = list(frames(data, begin, begin + area_bytes, generation))
            first = next((i for i, part in enumerate(parts) if part[0] == CHUNK_TYPE), None)
            parts = [p for i, p in enumerate(parts) if p[0] != CHUNK_TYPE or i == first]
            kept.append((generation, b"".join(frame(kind, cut(kind, body, most), n) for kind, body, n in parts)))
        kept = sorted(kept)[-2:]
        size = max(len(area) for _, area in kept)
        kept.sort(key=lambda area: (area[0] - 1) % 2)
        areas = b"".join(area.ljust(size, b"\0") for _, area in kept)
        ring = RING.pack(window + 64, size, 2, 0)
    rest = [(kind, cut(kind, body, most)) for kind, body, _ in frames(data, frames_offset, len(data), 0)]
    chunks = [i for i, (kind, _) in enumerate(rest) if kind == CHUNK_TYPE]
    rest = [f for i, f in enumerate(rest) if f[0] != CHUNK_TYPE or i in chunks[:2] + chunks[-1:]]
    head[8] = window + 64 + len(areas)
    tail = b"".join(frame(kind, body, 0) for kind, body in rest)
    head[9] = head[8] + len(tail)
    seed = (FILE.pack(*head) + (ring or data[FILE.size:header_bytes]) + metadata).ljust(window + 64, b"\0") + areas + tail
    open(sys.argv[2], "wb").write(seed)


if __name__ == "__main__":
    main()
