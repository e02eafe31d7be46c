"""Lets a Python program tell vramtrack what it is doing.

The functions are those of the C interface (include/vramtrack/annotate.h). In a process that is not
traced they do nothing, so a program may keep the calls. In a traced process `import vramtrack`
finds this module without anything being installed: the tracer carries a copy.
"""

__all__ = ["mark", "push", "pop", "step", "label", "scope", "active", "holders"]


def _bind():
    """The tracer's functions: handed in by the tracer itself, or found in the process."""
    given = globals().pop("_native", None)
    if given is not None:
        return given
    try:  # found by Python itself in a traced process: the tracer answers to this name
        return __import__("vramtrack._traced", fromlist=["_native"])._native
    except ImportError:
        pass
    try:
        import ctypes

        process = ctypes.CDLL(None)
        functions = {name: getattr(process, "vramtrack_" + name) for name in __all__[:5]}
    except (ImportError, OSError, AttributeError):
        return None
    functions["mark"].argtypes = functions["push"].argtypes = [ctypes.c_char_p]
    functions["step"].argtypes = [ctypes.c_uint64]
    functions["label"].argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    for function in functions.values():
        function.restype = None

    def encoded(function):
        return lambda name: function(name.encode())

    label_bytes = functions["label"]
    functions["mark"] = encoded(functions["mark"])
    functions["push"] = encoded(functions["push"])
    functions["label"] = lambda pointer, size, name: label_bytes(pointer, size, name.encode())
    return functions


_functions = _bind()


def active():
    """Whether a tracer listens."""
    return _functions is not None


def mark(name):
    """A named instant: `vramtrack report --at mark:NAME` shows the memory at it."""
    if _functions is not None:
        _functions["mark"](str(name))


def push(name):
    """Opens a phase on the calling thread; what is allocated inside belongs to the innermost one."""
    if _functions is not None:
        _functions["push"](str(name))


def pop():
    """Closes the innermost phase of the calling thread."""
    if _functions is not None:
        _functions["pop"]()


def step(n):
    """Begins step n of the job. From then on vramtrack does not count optimizer steps by itself."""
    if _functions is not None:
        _functions["step"](int(n))


def holders():
    """Finds out now who holds the memory that grows, and writes it to the trace; takes up to half a second.

    Returns the chains of references as texts: "train.py:12 main(): trainer.history[17]". `vramtrack
    leaks` shows them. Empty where nothing grew from step to step, or the helper is off.
    """
    request = None if _functions is None else _functions.get("request")
    return (request() if request is not None else None) or []


def label(what, *arguments):
    """Says what memory holds: label(pointer, bytes, name), or label(tensor, name).

    A name of a category ("kv_cache", "parameters", ...) sets the category; "kv_cache:layer 3" also
    says which one.
    """
    if len(arguments) == 2:
        pointer, size, name = (what,) + arguments
    elif len(arguments) == 1:
        (name,) = arguments
        storage = what.untyped_storage() if hasattr(what, "untyped_storage") else what.storage()
        pointer, size = storage.data_ptr(), storage.nbytes()
    else:
        raise TypeError("label() takes (pointer, bytes, name) or (tensor, name)")
    if _functions is not None:
        _functions["label"](int(pointer), int(size), str(name))


class scope:
    """A phase for the length of a `with` block."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        push(self.name)
        return self

    def __exit__(self, *exception):
        pop()
        return False
