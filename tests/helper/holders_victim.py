"""Looks for holders among plain objects, in any Python: right, and without leaving a trace.

usage: holders_victim.py HELPER_FOLDER      (preloaded; prints `ok` or what is wrong)
"""
import gc
import sys
import weakref

import vramtrack

FOLDER = sys.argv[1]
natives = vramtrack._functions
space = {"_native": natives, "__name__": "vramtrack_helper"}
for part in ("labels", "steady_steps", "helper", "holders"):
    with open("%s/%s.py" % (FOLDER, part)) as source:
        exec(compile(source.read(), "<vramtrack %s>" % part, "exec"), space)
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)


called = []


class Meta(type):
    def __eq__(cls, other):
        called.append("class ==")
        return NotImplemented

    def __hash__(cls):
        called.append("hash(class)")
        return 1

    def __getattribute__(cls, name):
        called.append("class." + name)
        return type.__getattribute__(cls, name)


class Hostile(metaclass=Meta):
    """Whatever a search might be tempted to ask, it must not."""

    def __init__(self, inside):
        object.__setattr__(self, "inside", inside)

    def __getattribute__(self, name):
        called.append("attribute " + name)
        raise RuntimeError(name)

    def __eq__(self, other):
        called.append("==")
        raise RuntimeError("==")

    def __hash__(self):
        called.append("hash")
        raise RuntimeError("hash")

    def __repr__(self):
        called.append("repr")
        raise RuntimeError("repr")

    def __bool__(self):
        called.append("bool")
        raise RuntimeError("bool")


class Thing:
    """What is looked for."""


class Slots:
    __slots__ = ("first", "kept")

    def __init__(self, kept):
        self.kept = kept


class Box:
    shared = None

    def __init__(self, kept):
        self.kept = kept


def closure_over(kept):
    def inner():
        return kept
    return inner


def suspended(kept):
    local = kept
    del kept
    yield 1
    return local


def failing(kept):
    precious = kept
    del kept
    raise ValueError(len(str(precious)))


def error_with(kept):
    try:
        failing(kept)
    except ValueError as error:
        del kept
        return error


HOLD = {}


def build():
    """name of what holds -> (holder, what the way from it to a new Thing reads like)."""
    cases = {}

    def case(name, make, reads):
        thing = Thing()
        cases[name] = (make(thing), thing, reads)

    case("list", lambda t: [1, [2, t]], "[1][1]")
    case("dict", lambda t: {"a": {(1, "b"): t}}, "['a'][(1, 'b')]")
    case("object", Box, ".kept")
    case("slots", Slots, ".kept")
    case("tuple in object", lambda t: Box((0, t)), ".kept[1]")
    case("hostile", lambda t: [Hostile([t])], "[0].inside[0]")
    case("closure", closure_over, "closure variable kept")
    case("error", error_with, "failing(): precious")

    def generator(thing):
        running = suspended(thing)
        next(running)
        return running
    case("generator", generator, " (suspended) -> holders_victim.py:")
    case("generator's variable", generator, " suspended(): local")
    case("method", lambda t: Box(t).__init__, ".__self__.kept")
    case("class", lambda t: type("Keeper", (), {"shared": [t]}), ".shared[0]")
    case("set", lambda t: {frozenset([t])}, "{...}{...}")
    return cases


def state(cases):
    return ([sys.getrefcount(thing) for _, thing, _ in cases.values()],
            [sys.getrefcount(holder) for holder, _, _ in cases.values()], gc.isenabled(), gc.get_threshold())


def ways_are_right():
    cases = build()
    fired = []
    watches = [weakref.ref(thing, lambda r: fired.append(1)) for _, thing, _ in cases.values()]
    del called[:]
    before = state(cases)
    for _ in range(3):
        for name, (holder, thing, reads) in cases.items():
            (way,) = natives["ways"]([holder], [], [], True, [thing], 10**7)
            check(way is not None and way[0] is holder and way[-1] is thing, "%s: no way" % name)
            if way is not None:
                text = space["Sentence"](way, "it").read()
                check(reads in text, "%s: reads %r" % (name, text))
            del way, holder, thing
    check(state(cases) == before, "references: %s, were %s" % (state(cases), before))
    check(not called, "called: %s" % called[:5])
    check(not fired and all(w() is not None for w in watches), "a weak reference fired")
    things = [thing for _, thing, _ in cases.values()]
    count = len(things)
    del cases, things
    gc.collect()
    check(len(fired) == count, "kept alive: %d of %d" % (count - len(fired), count))


def variables_are_right():
    def callee(argument, *rest, keyword=3, **more):
        shared = [argument]
        unset = 1
        del unset

        def uses():
            return shared, argument

        plain = 5
        frame = sys._getframe()
        told = {}
        for name, value in natives["variables"](frame):
            told[name] = value.cell_contents if type(value) is type(uses.__closure__[0]) else value
        return told, dict(argument=argument, rest=rest, keyword=keyword, more=more, shared=shared, uses=uses, plain=plain,
                          frame=frame)

    told, right = callee(1, 2, extra=4)
    for name, value in right.items():
        check(name in told and told[name] is value, "variable %s: %r, is %r" % (name, told.get(name), value))
    check("unset" not in told, "a variable that was deleted")
    running = suspended(HOLD)
    next(running)
    check(dict(natives["variables"](running.gi_frame)).get("local") is HOLD, "a generator's variable")


def cycles_are_found():
    enabled = gc.isenabled()
    gc.disable()
    first, second = Box(None), Box(None)
    first.kept, second.kept = second, [first]
    second.buffer = Thing()
    watch = weakref.ref(second.buffer)
    del first, second
    hidden = []
    way, closes, complete = natives["referrers"](gc.get_objects, watch(), hidden, 10**7)
    check(complete and closes >= 0, "no cycle: %s" % [type(w).__name__ for w in way])
    check(any(type(w) is Box for w in way), "not the cycle's objects: %s" % [type(w).__name__ for w in way])
    del way, hidden
    check(watch() is not None, "collected by the search")
    gc.collect()
    check(watch() is None, "kept alive by the search")
    if enabled:
        gc.enable()


def limits_are_kept():
    chain = target = []
    for _ in range(5000):
        chain = [chain]
    check(natives["ways"]([chain], [], [], True, [target], 10**8)[0] is not None, "not found in ample time")
    check(natives["ways"]([chain], [], [], True, [target], 0)[0] is None, "found in no time at all")
    for more, later in ([], [chain[0][0]]), ([chain[0][0]], [chain[0]]):
        found = natives["ways"]([chain], more, later, True, [target], 10**8)[0]
        check(found is not None and found[0] is chain[0][0], "what comes later is no root")
    check(natives["ways"]([chain], [], [chain[0]], False, [target], 10**8)[0] is None, "what is barred was entered")


for enabled in (True, False):
    gc.enable() if enabled else gc.disable()
    ways_are_right()
    variables_are_right()
    cycles_are_found()
    limits_are_kept()
    check(gc.isenabled() == enabled, "the collector was switched")
print("\n".join(failures) or "ok")
