"""Looks for holders of CPU tensors in PyTorch: the chains are right, and nothing of the program runs or changes.

usage: torch_holders_victim.py HELPER_FOLDER      (preloaded; prints `ok` or what is wrong)
"""
import gc
import sys
import weakref

import torch
import vramtrack
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

natives = vramtrack._functions
space = {"_native": natives, "__name__": "vramtrack_helper"}
for part in ("labels", "steady_steps", "helper", "holders"):
    with open("%s/%s.py" % (sys.argv[1], part)) as source:
        exec(compile(source.read(), "<vramtrack %s>" % part, "exec"), space)
failures, called = [], []


def check(condition, what):
    if not condition:
        failures.append(what)


class Watched(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        called.append("__torch_function__")
        return super().__torch_function__(function, types, args, kwargs or {})

    @property
    def grad_fn(self):
        called.append("grad_fn")
        raise RuntimeError


class FunctionMode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        called.append("function mode")
        return function(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        called.append("dispatch mode")
        return function(*args, **(kwargs or {}))


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.extra = x * 3
        context.save_for_backward(x * 2)
        EXTRA.append((context.extra.data_ptr(), context.extra.nbytes))
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


EXTRA = []
KEPT = {}


def unpack(packed):
    called.append("unpack hook")
    return packed[0]


def recomputed(x):
    called.append("recomputed")
    return torch.relu(x * 2)


def main():
    cases = []

    def case(tensor_or_range, reads):
        if isinstance(tensor_or_range, torch.Tensor):
            tensor_or_range = (tensor_or_range.data_ptr(), tensor_or_range.nbytes)
        cases.append((tensor_or_range, reads))

    history = [torch.randn(100) for _ in range(5)]
    case(history[3], "main(): history[3]")
    KEPT["outputs"] = torch.randn(10, 10)
    case(KEPT["outputs"], "__main__.KEPT['outputs']")
    view = torch.randn(64)[8:16]
    case((view.untyped_storage().data_ptr(), 256), "main(): view")

    leaf = torch.randn(200, requires_grad=True)
    middle = leaf.exp()
    saved = (middle.data_ptr(), middle.nbytes)
    loss = middle.sum()
    del middle
    case(saved, "main(): loss.grad_fn (1 node on) -> ExpBackward0.saved_result")

    through = Twice.apply(torch.randn(50, requires_grad=True))
    case(EXTRA[0], "extra")

    subclass = [torch.randn(30).as_subclass(Watched)]
    pointer = torch._C.TensorBase.data_ptr
    with torch._C.DisableTorchFunction():
        case((pointer(subclass[0]), 120), "main(): subclass[0]")

    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, "packed"), unpack):
        packed = torch.randn(70, requires_grad=True).square()
    recompute = checkpoint(recomputed, torch.randn(80, requires_grad=True), use_reentrant=False)
    deferred = weakref.WeakSet([history[0]])

    parameter = torch.nn.Parameter(torch.randn(40))
    parameter.grad = torch.randn(40)

    targets = [(address, size, number, 2) for number, ((address, size), _) in enumerate(cases)]
    kept = [weakref.ref(t, lambda r: called.append("weak reference")) for t in
            history + [KEPT["outputs"], view, leaf, loss, through, packed, recompute, parameter] + subclass]

    def state():
        return [sys.getrefcount(reference()) for reference in kept], gc.isenabled(), gc.get_count()[1:], len(deferred)

    for enabled in (True, False):
        gc.collect()  # which empties Python's free lists; what fills them again counts as made and not freed
        space["explain"](torch, targets, 60)
        gc.collect(0)
        gc.enable() if enabled else gc.disable()
        del called[:]
        before = state()
        with FunctionMode(), DispatchMode():
            results = space["explain"](torch, targets, 60)
        after = state()
        check(not called, "called: %s" % sorted(set(called)))
        check(before == after, "state %s, was %s" % (after, before))
        told = {target[2]: text for target, text in results}
        for number, (_, reads) in enumerate(cases):
            check(reads in told.get(number, ""), "%r, should have %r" % (told.get(number), reads))
        results = space["explain"](torch, targets, 0)
        check(isinstance(results, list), "with no time: %r" % (results,))
    gc.enable()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(5):
        space["explain"](torch, targets, 60)
    gc.collect()
    check(abs(len(gc.get_objects()) - before) < 20, "%d objects more" % (len(gc.get_objects()) - before))
    loss.backward()  # the graph is as it was
    check(leaf.grad is not None, "no gradient")
    del history, subclass, view, packed, recompute
    gc.collect()
    check(called == ["weak reference"] * 9, "kept alive: %s" % called)


main()
print("\n".join(failures) or "ok")
