"""Runs in each CPython: prints the line tables of much of its own standard library, and the lines
that it gives each instruction itself."""
import dis
import json
import sys
import types


def lines_of(code):
    size = len(code.co_code)
    lines = [0] * (size // 2)
    if hasattr(code, "co_positions"):
        for index, position in enumerate(code.co_positions()):
            lines[index] = position[0] or 0
    elif hasattr(code, "co_lines"):
        for begin, end, line in code.co_lines():
            for offset in range(begin, min(end, size), 2):
                lines[offset // 2] = line or 0
    else:
        starts = dict(dis.findlinestarts(code))
        line = 0
        for offset in range(0, size, 2):
            line = starts.get(offset, line)
            lines[offset // 2] = line
    return lines


def visit(code):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    print(json.dumps({
        "name": code.co_name, "minor": sys.version_info[1], "first_line": code.co_firstlineno,
        "table": table.hex(), "size": len(code.co_code), "lines": lines_of(code)}))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            visit(constant)


for name in ["os", "threading", "typing", "argparse", "asyncio.tasks", "dataclasses", "unittest.mock"]:
    module = __import__(name, fromlist=["x"])
    with open(module.__file__, encoding="utf-8") as file:
        visit(compile(file.read(), module.__file__, "exec"))
