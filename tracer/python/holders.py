# Who holds the memory that grows: the last part of the helper, run when it is first needed, in the
# globals of the others (the rules at the head of helper.py hold here too).
#
# The tracer names a few blocks of call stacks that keep more and more of them. Here the tensors on
# these blocks are looked up, and the ways of references that lead to them from a variable or a module;
# where only PyTorch's C++ graph refers to a block, the way to the graph. The danger is to disturb what
# is looked at: the collector is held back meanwhile, every reference of ours is gone at the end, and
# no code of the program runs: no properties, no __eq__, no __repr__, no unpacking of saved tensors.
MOST_SITES = 8
HEAP_US = 100_000  # a search of the whole heap is not begun with less time left
MOST_NODES = 20000
MOST_TEXT = 600
OF_A_MODEL = ("._parameters[", "._buffers[", ".grad")

growing = _native["growing"]
largest = _native["largest"]
ways = _native["ways"]
reachable = _native["reachable"]
referrers = _native["referrers"]
holder = _native["holder"]

Function = type(guarded)
Module = type(sys)
Frame = type(sys._getframe())
Code = type(guarded.__code__)
Generator = type(x for x in ())
Proxy = type(type.__dict__)
GetSet = type(Function.__code__)
Member = type(Function.__globals__)
BoundMethod = type(helper.tick)
LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3")
names_of_type = type.__dict__["__dict__"].__get__
name_of_type = type.__dict__["__name__"].__get__


deque = getattr(sys.modules.get("_collections"), "deque", None)


# Classes are compared with `is` and known by their id(): == and hash() may be their metaclass's.

def derives(cls, base):
    return any(known is base for known in ancestors(cls))


def in_class(cls, name):
    """What a class has under a name, as it is written there."""
    for base in ancestors(cls):
        found = names_of_type(base).get(name)
        if found is not None:
            return found
    return None


def attribute(thing, name):
    """A built-in attribute, never one that the program defined."""
    found = in_class(type(thing), name)
    kind = type(found)
    return found.__get__(thing) if kind is GetSet or kind is Member else None


def type_name(thing):
    cls = type(thing)
    module = names_of_type(cls).get("__module__")
    name = name_of_type(cls)
    return name if type(module) is not str or module in ("builtins", "__main__") else module.split(".")[-1] + "." + name


def key_text(key, depth=2):
    kind = type(key)
    if kind is str:
        return repr(key if len(key) < 60 else key[:57] + "...")
    if kind is int or kind is float or kind is bool or key is None:
        return repr(key)
    if kind is tuple and depth and len(key) <= 6:
        return "(" + ", ".join(key_text(part, depth - 1) for part in key) + ")"
    return "<" + type_name(key) + ">"


def is_library(file):
    return type(file) is not str or file.startswith("<frozen") or any(part in file for part in LIBRARIES)


def place_of(code):
    return "%s:%d %s()" % (code.co_filename.split("/")[-1], code.co_firstlineno, code.co_name)


SEQUENCES = [list, tuple, set, frozenset] + ([deque] if deque is not None else [])

SUSPENDED = {"generator": "gi", "coroutine": "cr", "async_generator": "ag"}  # and how their attributes begin


class Roots:
    """What a program can name: variables of running functions, outermost first, and globals of its modules; then
    variables of the libraries' functions; and later the globals of libraries."""

    def __init__(self):
        self.first, self.more, self.later, self.names, self.spaces = [], [], [], {}, set()
        ours = sys._current_frames()
        # A variable that refers to the frame it lives in is a cycle, which would keep all of it alive.
        del ours[_thread.get_ident()]
        for frame in [sys._getframe(1)] + list(ours.values()):
            chain = []
            while frame is not None:
                chain.append(frame)
                frame = frame.f_back
            for frame in reversed(chain):
                code = frame.f_code
                if code.co_filename.startswith("<vramtrack"):
                    continue
                roots = self.more if is_library(code.co_filename) else self.first
                for name, value in variables(frame):
                    self.add(roots, value, place_of(code) + ": " + name)
        for module in list(sys.modules.values()):
            plain = type(module) is Module  # nearly all
            space = module.__dict__ if plain else attribute(module, "__dict__") if derives(type(module), Module) else None
            name = None if space is None else space.get("__name__")
            if type(name) is not str or name == "vramtrack":
                continue
            own = name == "__main__" or not is_library(space.get("__file__"))
            self.add(self.first if own else self.later, space, name)
            self.spaces.add(id(space))

    def add(self, roots, value, name):
        if id(value) not in self.names:
            self.names[id(value)] = name
        roots.append(value)


class Sentence:
    """A way of references as text that reads like Python where it can."""

    def __init__(self, way, start, in_module=False):
        self.way = way
        self.text = start
        self.at = 0
        self.in_module = in_module  # the way begins with the globals of a module

    def read(self):
        while self.at < len(self.way) - 1:
            self.step(self.way[self.at], self.way[self.at + 1])
        return self.text

    def say(self, text, steps=1):
        self.text += text
        self.at += steps

    def step(self, this, next_one):
        sequence = next((k for k in SEQUENCES if derives(type(this), k)), None)
        if derives(type(this), dict):
            self.say(self.in_dict(this, next_one))
        elif sequence is not None:
            self.say(self.in_sequence(this, next_one, sequence))
        elif type(this) is Cell:
            self.say("")
        elif type(this) is Function and self.in_closure(this):
            pass
        elif type(this) is Frame:
            self.say(self.in_frame(this, next_one))
        elif type(next_one) is Frame and self.says_frame(this):
            pass
        elif derives(type(this), type):
            self.in_type(this, next_one)
        elif not self.in_attributes(this, next_one):
            self.say(self.elsewhere(this, next_one))

    def in_dict(self, this, next_one):
        for key, value in dict.items(this):
            if value is next_one:
                return "." + key if self.in_module and self.at == 0 and type(key) is str else "[" + key_text(key) + "]"
            if key is next_one:
                return " (a key)"
        return "[?]"

    def in_sequence(self, this, next_one, base):
        if base is set or base is frozenset:
            return "{...}"
        for index, value in enumerate(base.__iter__(this)):
            if value is next_one:
                return "[%d]" % index
        return "[?]"

    def in_closure(self, this):
        closure, after = this.__closure__, self.way[self.at + 1:]
        if len(after) < 2 or after[0] is not closure:
            return False
        for name, cell in zip(this.__code__.co_freevars, closure):
            if cell is after[1]:
                self.say(" (%s) -> closure variable %s" % (place_of(this.__code__), name), 3 if len(after) > 2 else 2)
                return True
        return False

    def in_frame(self, this, next_one):
        for name, value in variables(this):
            if value is next_one:
                return " -> %s: %s" % (place_of(this.f_code), name)
        return ".f_back" if this.f_back is next_one else " -> " + place_of(this.f_code)

    def says_frame(self, this):
        """A traceback, and up to 3.10 what is suspended, refers to a frame; the frame speaks for itself."""
        kind = name_of_type(type(this))
        if kind == "traceback":
            self.say("")
        elif kind in SUSPENDED:
            self.say(" (suspended)")
        return kind == "traceback" or kind in SUSPENDED

    def in_type(self, this, next_one):
        """Attributes of a class; its dictionary is a step of its own."""
        space = names_of_type(this)
        after = self.way[self.at + 2] if self.at + 2 < len(self.way) else None
        for key, value in space.items():
            if value is next_one or (after is not None and value is after and type(next_one) is dict):
                return self.say("." + key, 1 if value is next_one else 2)
        self.say(".<" + type_name(next_one) + ">")

    def in_attributes(self, this, next_one):
        space = attribute(this, "__dict__")
        if type(space) is Proxy:
            space = None
        wanted, steps = next_one, 1
        if space is next_one and self.at + 2 < len(self.way):
            wanted, steps = self.way[self.at + 2], 2
        if space is not None:
            for key, value in dict.items(space):
                if value is wanted:
                    self.say(("." + key if type(key) is str else "." + key_text(key)), steps)
                    return True
        for base in ancestors(type(this)):
            for name, found in list(names_of_type(base).items()):
                if type(found) is Member and type(name) is str:
                    try:
                        value = found.__get__(this)
                    except AttributeError:
                        continue
                    if value is next_one:
                        self.say("." + name)
                        return True
        return False

    def elsewhere(self, this, next_one):
        kind = name_of_type(type(this))
        prefix = SUSPENDED.get(kind)
        if prefix is not None:
            frame = attribute(this, prefix + "_frame")
            if frame is not None:
                return " (suspended)" + self.in_frame(frame, next_one)
        for name in ("__traceback__", "__cause__", "__context__", "tb_next", "__self__", "__func__", "func",
                     "args", "keywords", "__closure__", "__defaults__", "__kwdefaults__", "grad_fn",
                     "__wrapped__"):
            if attribute(this, name) is next_one:
                return "." + name
        return " -> inside " + type_name(this)


class Graph:
    """Saved tensors of PyTorch's graph behind the tensors that Python can see."""

    def __init__(self, search):
        self.search = search
        self.seen = {}  # id of a node -> the node, which stays while we look
        self.getters = {}  # id of the class of a node -> (name, getter) of what it saved

    def look(self, tensor):
        """Yields (index of the target, text) for what hangs on this tensor."""
        node = self.search.grad_fn_of(tensor)
        todo = [(node, 0)] if node is not None else []
        for node, distance in todo:  # which grows
            if len(self.seen) >= MOST_NODES or self.search.late():
                self.search.cut = True
                return
            if id(node) in self.seen:
                continue
            self.seen[id(node)] = node
            for name, saved in self.saved(node):
                target = self.search.target_at(saved)
                if target is not None:
                    between = "" if distance == 0 else " (%d nodes on)" % distance if distance > 1 else " (1 node on)"
                    yield target, ".grad_fn%s -> %s.%s" % (between, name_of_type(type(node)), name)
            after = attribute(node, "next_functions")
            if after is not None:
                todo.extend((pair[0], distance + 1) for pair in after if pair[0] is not None)

    def saved(self, node):
        cls = type(node)
        if id(cls) not in self.getters:
            self.getters[id(cls)] = [(name, found) for base in ancestors(cls) for name, found in names_of_type(base).items()
                                     if type(found) is GetSet and name.startswith("_raw_saved_")]
        for name, getter in self.getters[id(cls)]:
            try:
                raw = getter.__get__(node)
                for one in raw if type(raw) is tuple or type(raw) is list else (raw,):
                    if one is not None:
                        yield name[5:], one.data  # what was packed, without unpacking it
            except Exception:  # freed, or an older PyTorch that does not tell
                pass
        space = attribute(node, "__dict__")  # what a program's own function keeps on its context
        for key, value in list(dict.items(space)) if space else ():
            yield key, value


class Search:
    """One look: from blocks to sentences."""

    def __init__(self, torch, targets, limit):
        self.torch = torch
        self.targets = sorted(targets)  # (address, bytes, ...)
        self.starts = [t[0] for t in self.targets]
        self.deadline = time.thread_time() + limit
        self.hidden = []  # lists of ours that refer to what we look for
        self.cut = False  # not everything was looked at
        self.plain = {}  # id of a class -> whether its tensors have memory of their own
        self.dispatch = in_class(torch.Tensor, "__torch_dispatch__")
        self.is_cow = getattr(torch._C, "_is_cow_tensor", None)
        self.device_of = in_class(torch.Tensor, "device").__get__
        self.pointer_of = in_class(torch.Tensor, "data_ptr")
        self.grad_fn_of = in_class(torch.Tensor, "grad_fn").__get__

    def left_us(self):
        return max(0, int((self.deadline - time.thread_time()) * 1e6))

    def late(self):
        return time.thread_time() > self.deadline

    def has_memory(self, tensor):
        """Not of a wrapper, whose memory is in others; and not one whose address is a copy away."""
        cls = type(tensor)
        plain = self.plain.get(id(cls))
        if plain is None:
            plain = derives(cls, self.torch.Tensor) and in_class(cls, "__torch_dispatch__") is self.dispatch
            self.plain[id(cls)] = plain
        return plain and self.device_of(tensor).type != "meta" and not (self.is_cow is not None and self.is_cow(tensor))

    def target_at(self, tensor):
        """Which target a tensor lies on."""
        if not self.has_memory(tensor):
            return None
        try:
            pointer = self.pointer_of(tensor)
        except Exception:  # sparse ones and the like
            return None
        low, high = 0, len(self.starts)
        while low < high:
            middle = (low + high) // 2
            if self.starts[middle] <= pointer:
                low = middle + 1
            else:
                high = middle
        if low == 0 or pointer >= self.targets[low - 1][0] + self.targets[low - 1][1]:
            return None
        return low - 1

    def run(self):
        """The sentence for each target, as [(target, text)]: first from what the program itself can name, then
        from the whole heap."""
        self.roots, found = Roots(), {}
        types = self.tensor_types()
        near = reachable(self.roots.first, self.roots.more, self.roots.later, types, self.left_us())
        self.hidden += [self.roots.first, self.roots.more, self.roots.later]
        self.match(near, False, found)
        missing = set(range(len(self.targets))) - set(found)
        if missing and self.left_us() > HEAP_US:
            on_target = self.match(objects_of(gc.get_objects, types), True, found)
            for target in sorted(missing - set(found)):
                found[target] = self.without_root(on_target.get(target))
        return [(self.targets[target], text[:MOST_TEXT]) for target, text in sorted(found.items()) if text]

    def match(self, tensors, everywhere, found):
        """Adds to `found` what these tensors explain; returns those that lie on targets, by target."""
        on_target, with_graph = {}, []
        self.hidden += [tensors, with_graph, on_target]
        for index, tensor in enumerate(reversed(tensors)):  # the newest first
            if index % 256 == 255 and self.late():
                self.cut = True
                break
            target = self.target_at(tensor)
            if target is not None and target not in found:
                on_target.setdefault(target, []).append(tensor)
            if self.grad_fn_of(tensor) is not None:
                with_graph.append(tensor)
        self.hidden += list(on_target.values())
        self.reach(on_target, everywhere, found)
        missing = set(range(len(self.targets))) - set(found)
        if missing and with_graph and not self.late():
            self.through_graph(with_graph, missing, everywhere, found)
        return on_target

    def tensor_types(self):
        types, todo = [], [self.torch.Tensor]
        while todo:
            cls = todo.pop()
            if not any(cls is known for known in types):
                types.append(cls)
                todo += type.__subclasses__(cls)
        return types

    def reach(self, on_target, everywhere, found):
        """Sentences for tensors that Python can reach."""
        flat = [(target, tensor) for target, tensors in on_target.items() for tensor in tensors[:3]]
        for (target, _), text in zip(flat, self.sentences([tensor for _, tensor in flat], everywhere)):
            if text is not None:
                found.setdefault(target, text)

    def sentences(self, things, everywhere):
        roots = self.roots
        self.hidden.append(things)
        for way in ways(roots.first, roots.more, roots.later, everywhere, things, self.left_us()) if things else ():
            start = None if way is None else id(way[0])
            yield None if way is None else Sentence(way, roots.names.get(start, "?"), start in roots.spaces).read()

    def through_graph(self, with_graph, missing, everywhere, found):
        graph, hits = Graph(self), {}
        for tensor in with_graph:
            for target, text in graph.look(tensor):
                if target in missing:
                    hits.setdefault(target, (tensor, text))
            if len(hits) == len(missing) or self.late():
                break
        anchors = [tensor for tensor, _ in hits.values()]
        for (target, (_, suffix)), text in zip(hits.items(), self.sentences(anchors, everywhere)):
            if text is not None:
                found[target] = text + suffix

    def without_root(self, tensors):
        if self.cut or self.late():
            return None
        if not tensors:
            return "no Python object holds it, nor the graph behind one: C++ does"
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename.startswith("<vramtrack"):
            self.hidden.append(frame)  # a cycle until explain() ends it
            frame = frame.f_back
        del frame
        way, closes, complete = referrers(gc.get_objects, tensors[0], self.hidden, self.left_us())
        if closes >= 0:
            circle = way[closes:][::-1]
            sentence = Sentence(circle + circle[:1], type_name(circle[0]))
            text = "a reference cycle that nothing else refers to: " + sentence.read() + " is the " + type_name(circle[0])
            rest = way[:closes + 1][::-1]
            return text + ", which holds " + Sentence(rest, type_name(rest[0])).read()
        if not complete:
            return None
        if len(way) == 1:
            return "only C++ holds it, through a tensor that Python once saw"
        way = way[::-1]
        return "C++ holds " + Sentence(way, type_name(way[0])).read()


class Holders:
    """When to look, and at what."""

    def __init__(self):
        self.told = {}  # stack -> how often its holder was told

    def look(self, torch, limit, at_oom):
        blocks = growing(128)
        results = explain(torch, self.choose(blocks), limit) if blocks else []
        if at_oom and not blocks:
            blocks = largest(128)
            results = list(in_containers(explain(torch, self.choose(blocks), limit))) if blocks else []
        for (address, size, stack, _), text in results:
            holder(address, size, stack, text, at_oom)
            self.told[stack] = self.told.get(stack, 0) + 1
        return [text for _, text in results]

    def choose(self, blocks):
        stacks = sorted({b[2] for b in blocks}, key=lambda s: self.told.get(s, 0))[:MOST_SITES]
        return [b for stack in stacks for b in blocks if b[2] == stack]


def in_containers(results):
    """Of blocks of which nobody knows yet whether they grow: those that one container holds several of. What belongs
    to a model or to a graph is many, too, and no finding."""
    for stack in {target[2] for target, _ in results}:
        of_stack = [(target, text) for target, text in results if target[2] == stack]
        texts = {text for _, text in of_stack}
        if len(texts) < 2 or len({without_keys(text) for text in texts}) > 1:
            continue
        if not any(part in text for part in OF_A_MODEL for text in texts):
            yield from of_stack


def without_keys(text):
    return "".join(part[part.find("]") + 1:] if i else part for i, part in enumerate(text.split("[")))


def explain(torch, targets, limit):
    collecting = gc.isenabled()
    gc.disable()  # our own objects must not set off a collection of the program's
    search = Search(torch, targets, limit)
    try:
        with torch._C.DisableTorchFunction():
            return search.run()
    finally:
        search.hidden.clear()
        if collecting:
            gc.enable()
