# What the objects of a traced process tell about its memory: which tensors are parameters, buffers,
# gradients, optimizer state and KV caches, and what its modules are called. Runs before helper.py and
# in the same globals; the rules at the head of that file hold here too.
import _thread
import gc
import os
import sys
from _weakref import ref

CPU_TENSORS = os.environ.get("VRAMTRACK_CPU", "0") not in ("", "0", "off", "no", "false")
CACHE_NAMES = ("k_cache", "v_cache", "kv_cache", "key_cache", "value_cache", "past_key")

label = _native["label"]
name_module = _native["name_module"]
types_of = _native["types_of"]
objects_of = _native["objects_of"]
variables = _native["variables"]
Cell = type((lambda shared: lambda: shared)(0).__closure__[0])

# How a class answers without running code of its metaclass.
ancestors = type.__dict__["__mro__"].__get__
KINDS = {
    ("torch.nn.modules.module", "Module"): "module",
    ("torch.optim.optimizer", "Optimizer"): "optimizer",
    ("transformers.cache_utils", "Cache"): "cache",
}


def kind_of(cls):
    """What a type is to us, by the names of its ancestors, so that nothing has to be imported."""
    for base in ancestors(cls):
        module = base.__dict__.get("__module__")
        if type(module) is str and (module, base.__name__) in KINDS:
            return KINDS[module, base.__name__]
    return None


def find_objects():
    """All modules, optimizers and caches of the process. Searches the heap of Python."""
    found = {"module": [], "optimizer": [], "cache": []}
    kinds = {}  # by id, not by class: hashing a class may run code of its metaclass
    wanted = []
    for cls in types_of(gc.get_objects):
        kind = kind_of(cls)
        if kind is not None:
            kinds[id(cls)] = kind
            wanted.append(cls)
    if wanted:
        for candidate in objects_of(gc.get_objects, wanted):
            found[kinds[id(type(candidate))]].append(candidate)
    return found


def references(objects):
    for candidate in objects:
        try:
            yield ref(candidate)
        except TypeError:  # it allows none
            pass


def building(modules):
    """Is a module under construction? What it consists of does not have its final name yet."""
    known = {id(module) for module in modules}
    running = sys._current_frames()
    # A variable that refers to the frame it lives in is a cycle, which would keep all of it alive.
    del running[_thread.get_ident()]
    for frame in [sys._getframe(1)] + list(running.values()):
        while frame is not None:
            code = frame.f_code
            if code.co_name == "__init__" and code.co_argcount:
                for name, value in variables(frame):
                    if name == code.co_varnames[0] and id(content(value)) in known:
                        return True
            frame = frame.f_back
    return False


def content(variable):
    """What a function of its own, such as a comprehension, shares with the function around it lies in a cell."""
    try:
        return variable.cell_contents if type(variable) is Cell else variable
    except ValueError:
        return None


class Scan:
    """One pass over everything that holds tensors; labels storages, the first name wins."""

    def __init__(self, torch, found):
        self.torch = torch
        self.found = found
        self.plain_dispatch = torch.Tensor.__torch_dispatch__
        self.is_cow = getattr(torch._C, "_is_cow_tensor", None)
        self.labelled = set()
        self.names = {}  # id of a parameter -> its name
        self.shapes_outside = set()  # of parameters that no optimizer holds

    def run(self):
        if not building(self.found["module"]):
            self.name_modules()
        parameters = list(self.parameters())
        owned = set()
        for optimizer in self.found["optimizer"]:
            for group in optimizer.__dict__.get("param_groups", ()):
                owned.update(id(p) for p in group.get("params", ()))
        for name, parameter in parameters:
            self.names.setdefault(id(parameter), name)
            if id(parameter) not in owned:
                self.shapes_outside.add(tuple(parameter.shape))
            self.tensor(parameter, "parameters:" + name)
        for name, buffer in self.buffers():
            cached = any(part in name.lower() for part in CACHE_NAMES)
            self.tensor(buffer, ("kv_cache:" if cached else "parameters:") + name)
        for optimizer in self.found["optimizer"]:
            self.optimizer(optimizer)
        for name, parameter in parameters:
            self.gradient(parameter, name)
        for cache in self.found["cache"]:
            self.cache(cache)

    def roots(self):
        """Modules that are no other's children, with a prefix where there are several."""
        modules = self.found["module"]
        children = set()
        for module in modules:
            children.update(id(c) for c in module.__dict__.get("_modules", {}).values())
        roots = [m for m in modules if id(m) not in children]
        full = [m for m in roots if any(map(self.has_memory, self.walk(m, "", "_parameters")))]
        rest = [m for m in roots if not any(m is f for f in full)]
        for module in full + rest:
            prefix = "" if len(full) < 2 else type(module).__name__ + "."
            yield module, prefix

    def has_memory(self, item):
        tensor = item[1]
        plain = type(tensor).__torch_dispatch__ is self.plain_dispatch
        return tensor.device.type != "meta" and (plain or hasattr(type(tensor), "__tensor_flatten__"))

    def name_modules(self):
        for root, prefix in self.roots():
            for name, module in self.modules(root, prefix):
                name_module(id(module), name.rstrip(".") or type(module).__name__)

    def walk(self, root, prefix, attribute):
        for name, module in self.modules(root, prefix):
            for key, tensor in list((module.__dict__.get(attribute) or {}).items()):
                if tensor is not None:
                    yield name + key, tensor

    def modules(self, root, prefix):
        """A module and all below it, in their order, with names that end in a dot."""
        seen = set()
        todo = [(root, prefix)]
        while todo:
            module, name = todo.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            children = list((module.__dict__.get("_modules") or {}).items())
            for key, child in reversed(children):
                if child is not None:
                    todo.append((child, name + key + "."))

    def parameters(self):
        for root, prefix in self.roots():
            for item in self.walk(root, prefix, "_parameters"):
                yield item

    def buffers(self):
        for root, prefix in self.roots():
            for item in self.walk(root, prefix, "_buffers"):
                yield item

    def optimizer(self, optimizer):
        groups = optimizer.__dict__.get("param_groups", ())
        for number, group in enumerate(groups):
            for index, parameter in enumerate(group.get("params", ())):
                if id(parameter) in self.names:
                    continue
                name = "param_groups[%d][%d]" % (number, index)
                self.names[id(parameter)] = name
                # A copy of a parameter that the optimizer does not know is its master weight.
                master = tuple(parameter.shape) in self.shapes_outside
                self.tensor(parameter, ("optimizer_state:master weight " if master else "parameters:") + name)
                self.gradient(parameter, name)
        for parameter, state in list((optimizer.__dict__.get("state") or {}).items()):
            of = " of " + self.names.get(id(parameter), "?")
            self.nested(state, "optimizer_state:", of, 3)

    def gradient(self, parameter, name):
        if parameter.is_leaf and parameter.grad is not None:
            self.tensor(parameter.grad, "gradients:" + name)

    def cache(self, cache):
        state = cache.__dict__
        for kind in ("key", "value"):
            for number, tensor in enumerate(state.get(kind + "_cache") or ()):
                self.nested(tensor, "kv_cache:layer %d %ss" % (number, kind), "", 2)
        for number, layer in enumerate(state.get("layers") or ()):
            for kind in ("keys", "values"):
                tensor = layer.__dict__.get(kind)
                self.nested(tensor, "kv_cache:layer %d %s" % (number, kind), "", 2)

    def nested(self, value, name, suffix, depth):
        if isinstance(value, self.torch.Tensor):
            self.tensor(value, name + suffix)
        elif depth and type(value) is dict:
            for key, inner in list(value.items()):
                self.nested(inner, name + str(key), suffix, depth - 1)
        elif depth and type(value) in (list, tuple):
            for inner in list(value):
                self.nested(inner, name, suffix, depth - 1)

    def tensor(self, tensor, name, depth=2):
        try:
            cls = type(tensor)
            if cls.__torch_dispatch__ is not self.plain_dispatch:
                # A wrapper (distributed, quantised ...) has its memory in the tensors inside; one
                # that cannot be opened (fake, functional) has none.
                if depth and hasattr(cls, "__tensor_flatten__"):
                    for inner in tensor.__tensor_flatten__()[0]:
                        self.tensor(getattr(tensor, inner), name, depth - 1)
                return
            device = tensor.device.type
            if device == "meta" or (device == "cpu" and not CPU_TENSORS):
                return
            if self.is_cow is not None and self.is_cow(tensor):
                return  # asking for its address would copy it
            storage = tensor.untyped_storage()
            pointer = storage.data_ptr()
            if pointer and pointer not in self.labelled:
                self.labelled.add(pointer)
                label(pointer, storage.nbytes(), name)
            # What quantisation hangs on a parameter: scales and the like.
            if depth and cls.__module__.startswith("bitsandbytes"):
                state = tensor.__dict__.get("quant_state")
                if state is not None:
                    for key, value in vars(state).items():
                        self.nested(value, name + ".quant_state." + key, "", 1)
        except Exception:
            pass
