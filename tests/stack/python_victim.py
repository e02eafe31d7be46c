"""Runs in each CPython: captures stacks through the library in many situations, and notes what
Python itself says its frames were at that moment. python_stacks_test.py compares.

usage: python_victim.py <capture library> <output folder>
"""
import asyncio
import ctypes
import functools
import json
import os
import sys
import threading

library_path, out = sys.argv[1:3]
library = ctypes.CDLL(library_path)
library.capture.restype = ctypes.c_uint32
library.call_back.restype = ctypes.c_uint32
library.on_plain_thread.restype = ctypes.c_uint32
capture = library.capture
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_uint32)

cases = []


def expected():
    frames = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.append([name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


def note(name, stack, frames, **more):
    cases.append(dict(name=name, stack=stack, frames=frames, **more))


def plain():
    note("plain", capture(), expected())


def nested(depth):
    if depth:
        return nested(depth - 1)
    note("recursion", capture(), expected())


def several_lines():
    values = [
        1,
        (capture(), expected()),
        3,
    ]
    note("several lines", *values[1])


def generator():
    yield 1
    yield capture(), expected()


def delegating():
    yield from generator()


class Module:
    def __init__(self):
        self.value = capture(), expected()

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, x=0):
        return capture(), expected()

    @property
    def lazy(self):
        return capture(), expected()

    @staticmethod
    def compare(a, b):
        note("sort", capture(), expected())
        return a - b


async def inner():
    await asyncio.sleep(0)
    return capture(), expected()


async def outer():
    return await inner()


def decorated():
    @functools.lru_cache(None)
    def cached(n):
        return (capture(), expected()) if n == 0 else cached(n - 1)

    note("lru_cache", *cached(5))


def raising():
    try:
        {}["missing"]
    except KeyError:
        note("except", capture(), expected())
    try:
        raise ValueError
    except ValueError:
        pass
    finally:
        note("finally", capture(), expected())


def with_callback():
    result = []

    @CALLBACK
    def python_again():
        result.append(expected())
        # The caller's frames are those of `expected` above, but for the line.
        result[0][0][2] += 3
        return capture()

    stack = library.call_back(python_again)
    note("callback", stack, result[0], native_between="call_back")


def on_threads():
    def run(n):
        def work():
            results.append((capture(), expected()))

        work()

    results = []
    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        note("thread", *result)


def recycled(count):
    """Code objects that come and go at the same addresses."""
    for n in range(count):
        source = "\n" * (n % 50) + "def made_%d():\n return capture(), expected()\n" % n
        names = {"capture": capture, "expected": expected}
        exec(compile(source, "made_%d.py" % n, "exec"), names)
        note("recycled", *names["made_%d" % n]())
        del names


def ünïcode():
    note("unicode", capture(), expected())


def long_function():
    source = ["def long_function():"] + [" x = %d" % n for n in range(3000)]
    source += [" return capture(), expected()"]
    names = {"capture": capture, "expected": expected}
    exec(compile("\n".join(source), "long.py", "exec"), names)
    note("long function", *names["long_function"]())


def too_deep(depth):
    if depth:
        return too_deep(depth - 1)
    note("cut", capture(), expected(), cut=True)


def in_child():
    """A forked child starts with empty tables: everything it uses is defined again."""
    path = os.path.join(out, "child")
    child = os.fork()
    if child == 0:
        library.after_fork()
        cases.clear()
        plain()
        save(path)
        os._exit(0)
    os.waitpid(child, 0)


def save(path):
    library.save((path + ".records").encode())
    with open(path + ".json", "w") as file:
        json.dump(cases, file)


plain()
plain()
nested(60)
several_lines()
for value in generator():
    if value != 1:
        note("generator", value[0], value[1][:-1], outermost_line_differs=True)
list(delegating())
note("generator expression", *next((capture(), expected()) for _ in range(1)))
note("list comprehension", *[(capture(), expected()) for _ in range(1)][0])
note("lambda", *(lambda: (capture(), expected()))())
note("init", *Module().value)
note("call", *Module()(x=1))
note("property", *Module().lazy)
sorted([3, 2], key=functools.cmp_to_key(Module.compare))
note("map", *list(map(lambda _: (capture(), expected()), [1]))[0])
note("coroutine", *asyncio.run(outer()))
decorated()
raising()
with_callback()
on_threads()
recycled(1000)
ünïcode()
long_function()
sys.setrecursionlimit(5000)
too_deep(600)
note("no thread state", library.on_plain_thread(), [])
in_child()
save(os.path.join(out, "parent"))
