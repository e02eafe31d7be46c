# Runs inside traced Python processes (helper.h tells how it gets there). Says what only Python knows:
# steps, versions, and which memory holds parameters, gradients, optimizer state and KV caches.
#
# Rules: never import what the program has not imported; never let an exception out; never keep a
# tensor alive; spend little time. Code of the program is not called: no properties, no __getattr__,
# no __torch_function__ of tensor subclasses, hence the detours through type() and __dict__.
import _thread
import gc
import os
import sys
import time
from _weakref import ref

SHARE = 0.01  # of the time may go into looking at known objects, and as much into finding new ones
CPU_TENSORS = os.environ.get("VRAMTRACK_CPU", "0") not in ("", "0", "off", "no", "false")
SIMULATED = os.environ.get("VRAMTRACK_SIMULATED", "0") not in ("", "0", "off", "no", "none", "false")
CACHE_NAMES = ("k_cache", "v_cache", "kv_cache", "key_cache", "value_cache", "past_key")

label = _native["label"]
metadata = _native["metadata"]
auto_step = _native["auto_step"]
watch_steps = _native["watch_steps"]
name_module = _native["name_module"]
types_of = _native["types_of"]
objects_of = _native["objects_of"]
epoch = _native["epoch"]
answer = _native["answer"]
holders_source = _native["holders_source"]
variables = _native["variables"]
Cell = type((lambda shared: lambda: shared)(0).__closure__[0])
FREE_SCANS = 6  # that hardly count against SHARE: models are built and moved at the beginning
FIRST_LOOK = 8  # steps after which growth can be seen; then twice as many, and so on
FREE_LOOKS = 4  # likewise
STEP_LIMIT = 0.05  # seconds of processor time to find holders in, at a step's boundary and an out-of-memory error
ASKED_LIMIT = 0.5  # at the end, and on request


def guarded(function):
    """Exceptions of ours end here. KeyboardInterrupt and the like belong to the program."""

    def call(*arguments):
        try:
            return function(*arguments)
        except Exception:
            return None

    return call


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


class SteadySteps:
    """Ends the program, as sys.exit() would, once `wanted` steps in a row moved memory in the same way.

    A step is compared with the one before by all that the allocator and the driver count, requested
    bytes included: a list that grows by a loss, a cache that grows inside its last block, and a new
    high-water mark are differences. A program whose steps nobody knows runs to its end.
    """

    def __init__(self, wanted):
        self.wanted = wanted
        self.steps = 0
        self.alike = 0  # steps in a row, the latest included
        self.totals = None  # bytes and blocks ever allocated, at the end of the latest step
        self.latest = None  # what the latest step did

    def ended(self, torch):
        """At the end of a step, on the thread that ends it."""
        if not self.wanted or torch is None or not torch.cuda.is_initialized():
            return
        self.steps += 1
        threads = sys.modules.get("threading")
        if threads is None or threads.main_thread().ident != _thread.get_ident():
            return  # elsewhere SystemExit would end a thread, not the program
        if torch.cuda.is_current_stream_capturing():
            return
        standing, totals = self.measure(torch)
        before, self.totals = self.totals, totals
        if before is None or len(before) != len(totals):
            self.latest = None
            return
        step = (standing, [now - then for now, then in zip(totals, before)])
        self.alike = self.alike + 1 if step == self.latest else 1
        self.latest = step
        if self.alike >= self.wanted:
            self.stop()

    def measure(self, torch):
        standing, totals = [], []
        for device in range(torch.cuda.device_count()):
            stats = torch.cuda.memory_stats_as_nested_dict(device)
            if not stats or not stats["reserved_bytes"]["all"]["peak"]:
                continue  # not used; to ask the driver would make a context there
            for name in ("allocated_bytes", "reserved_bytes", "active_bytes"):
                standing += [stats[name]["all"]["current"], stats[name]["all"]["peak"]]
            requested = stats.get("requested_bytes", stats["allocated_bytes"])["all"]
            standing.append(requested["current"])
            if SIMULATED:  # on a real card others come and go
                standing.append(torch.cuda.mem_get_info(device)[0])
            totals += [requested["allocated"], stats["allocated_bytes"]["all"]["allocated"],
                       stats["allocation"]["all"]["allocated"]]
        return standing, totals

    def stop(self):
        wanted, self.wanted = self.wanted, 0  # a program that goes on all the same goes on to its end
        alike = "%d steady steps" % wanted if wanted > 1 else "a steady step"
        metadata("stopped_after_steady_steps", "%d of %d" % (wanted, self.steps))
        try:
            sys.stderr.write(
                "vramtrack: the program was ended after %s (%d in all): memory no longer changes from step to "
                "step. What would follow was not run; --stop-after-steps 0 runs to the end\n" % (alike, self.steps))
        except Exception:
            pass
        raise SystemExit(0)


def steps_wanted():
    text = os.environ.get("VRAMTRACK_STOP_AFTER_STEPS", "")
    return int(text) if text.isdecimal() else 0


class Helper:
    def __init__(self):
        self.steady = SteadySteps(steps_wanted())
        self.program_steps = False  # the program counts them itself
        watch_steps(self.program_step)
        self.lock = _thread.allocate_lock()
        self.file = 0  # epoch of the file that knows the metadata
        self.attached = False
        self.watches_memory = False
        self.steps = 0
        self.stepping = None  # id of the optimizer whose steps are the job's steps
        self.known = {}  # by kind: weak references to what the last search found
        self.scans = 0
        self.next_search = 0.0  # of the heap, for new objects
        self.next_scan = 0.0  # of known objects
        self.forget_looks()
        answer(guarded(self.asked))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.after_fork)

    def after_fork(self):
        self.lock = _thread.allocate_lock()
        self.scans = 0
        self.next_search = self.next_scan = 0.0
        self.forget_looks()

    def forget_looks(self):
        self.boundaries = self.looks = 0
        self.look_at = FIRST_LOOK
        self.next_look = 0.0
        self.ooms = 0
        self.next_oom = 0.0
        self.holders = None

    def tick(self):
        if sys.is_finalizing():
            return
        torch = sys.modules.get("torch")
        if torch is not None and "optim" in torch.__dict__:
            self.attach(torch)
        file = epoch()
        if file and file != self.file:
            self.file = file
            self.describe(torch)
        self.scan(False)

    def attach(self, torch):
        if not self.attached:
            self.attached = True
            import atexit  # in every Python process anyway

            atexit.register(guarded(self.at_exit))
            optimizer = sys.modules.get("torch.optim.optimizer")
            register = getattr(optimizer, "register_optimizer_step_post_hook", None)
            if register is not None:
                register(self.after_step)
        if not self.watches_memory and torch.cuda.is_initialized():
            self.watches_memory = True
            observe = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
            if observe is not None:
                observe(guarded(self.out_of_memory))

    def describe(self, torch):
        metadata("python", sys.version.split()[0])
        if torch is None:
            return
        metadata("torch", str(torch.__version__))
        metadata("torch_cuda", str(torch.version.cuda or torch.version.hip or "none"))
        for package in ("transformers", "accelerate", "deepspeed", "peft", "vllm", "bitsandbytes"):
            version = getattr(sys.modules.get(package), "__version__", None)
            if version is not None:
                metadata(package, str(version))
        try:
            metadata("allocator_backend", str(torch.cuda.get_allocator_backend()))
        except Exception:
            pass

    def after_step(self, optimizer, arguments, keywords):
        try:
            torch = sys.modules["torch"]
            compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
            if compiling is not None and compiling():
                return
            # The optimizer that steps first counts the steps; with several, a step of the job is one
            # round of all.
            if self.stepping is None:
                self.stepping = id(optimizer)
            if self.stepping == id(optimizer):
                self.scan(self.steps in (0, 1))
                self.steps += 1
                auto_step(self.steps)
                if not self.program_steps:
                    self.boundary()
                    self.steady.ended(torch)
        except Exception:
            pass

    def program_step(self):
        self.program_steps = True
        try:
            self.boundary()
            self.steady.ended(sys.modules.get("torch"))
        except Exception:
            pass

    def boundary(self):
        """A step begins: now and then, who holds what grows?"""
        self.boundaries += 1
        if self.boundaries < self.look_at or time.monotonic() < self.next_look:
            return
        started = time.thread_time()
        try:
            self.look(STEP_LIMIT)
        except Exception:
            pass
        self.look_at = self.boundaries + 1
        self.looks += 1
        if self.looks < FREE_LOOKS:
            self.look_at = FIRST_LOOK << self.looks
        else:
            self.next_look = time.monotonic() + max(0.01, time.thread_time() - started) / SHARE

    def look(self, limit, at_oom=False):
        torch = sys.modules.get("torch")
        if torch is None or "Tensor" not in torch.__dict__ or not epoch() or not self.lock.acquire(False):
            return []
        try:
            if self.holders is None:
                space = globals()
                if "Holders" not in space:
                    exec(compile(holders_source(), "<vramtrack holders>", "exec"), space)
                self.holders = space["Holders"]()
            return self.holders.look(torch, limit, at_oom)
        finally:
            self.lock.release()

    def out_of_memory(self, *arguments):
        """While the error is on its way: programs catch it, make room and try again, and some do so all the time."""
        now = time.monotonic()
        if now < self.next_oom:
            return
        started = time.thread_time()
        collecting = gc.isenabled()
        gc.disable()  # what a collection frees now would be there for the next try, and without us it is not
        try:
            self.scan(True)
            self.look(STEP_LIMIT, True)
        finally:
            if collecting:
                gc.enable()
        self.ooms += 1
        if self.ooms >= FREE_LOOKS:
            self.next_oom = now + (time.thread_time() - started) / SHARE

    def asked(self):
        return self.look(ASKED_LIMIT)

    def at_exit(self):
        self.scan(True)
        self.look(ASKED_LIMIT)

    def scan(self, asked):
        torch = sys.modules.get("torch")
        now = time.monotonic()
        search = asked or now >= self.next_search
        if torch is None or not epoch() or not (search or now >= self.next_scan):
            return
        if not self.lock.acquire(False):
            return
        try:
            guard = getattr(torch._C, "DisableTorchFunctionSubclass", None)
            guard = guard or torch._C.DisableTorchFunction
            found = self.search(now) if search else self.recall()
            started = time.monotonic()
            with guard():
                Scan(torch, found).run()
            ended = time.monotonic()
            self.next_scan = ended + (ended - started) / SHARE
        finally:
            self.lock.release()

    def search(self, now):
        found = find_objects()
        self.known = {kind: list(references(objects)) for kind, objects in found.items()}
        self.scans += 1
        spent = time.monotonic() - now
        self.next_search = now + max(0.2, 4 * spent if self.scans < FREE_SCANS else spent / SHARE)
        return found

    def recall(self):
        found = {}
        for kind, known in self.known.items():
            objects = [reference() for reference in known]
            found[kind] = [candidate for candidate in objects if candidate is not None]
        return found


helper = Helper()
tick = guarded(helper.tick)
