# Runs inside traced Python processes (helper.h tells how it gets there): when to look at the program's
# objects (labels.py), at its steps (steady_steps.py), and at who holds what grows (holders.py).
#
# Rules: never import what the program has not imported; never let an exception out; never keep a
# tensor alive; spend little time. Code of the program is not called: no properties, no __getattr__,
# no __torch_function__ of tensor subclasses, hence the detours through type() and __dict__.
import _thread
import gc
import os
import sys
import time

SHARE = 0.01  # of the time may go into looking at known objects, and as much into finding new ones
FREE_SCANS = 6  # that hardly count against SHARE: models are built and moved at the beginning
FIRST_LOOK = 8  # steps after which growth can be seen; then twice as many, and so on
FREE_LOOKS = 4  # likewise
STEP_LIMIT = 0.05  # seconds of processor time to find holders in, at a step's boundary and an out-of-memory error
ASKED_LIMIT = 0.5  # at the end, and on request

metadata = _native["metadata"]
auto_step = _native["auto_step"]
watch_steps = _native["watch_steps"]
epoch = _native["epoch"]
answer = _native["answer"]
holders_source = _native["holders_source"]


def guarded(function):
    """Exceptions of ours end here. KeyboardInterrupt and the like belong to the program."""

    def call(*arguments):
        try:
            return function(*arguments)
        except Exception:
            return None

    return call


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
