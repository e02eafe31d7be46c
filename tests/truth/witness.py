"""Knows what every tensor of a script is, without the tracer's help.

Identity says what parameters, buffers, gradients and optimizer state are. A torch function mode sees each call that
the script makes and what comes out of it; saved_tensors_hooks show what autograd keeps beside that; hooks on the
nodes of the graph show what the backward pass makes. What is a score and what are keys follows from the flow of
data: whatever a softmax reads was a score, the second factor of the product that made it was K. Nothing here
reads a stack, and nothing keeps memory alive: storages are known by weak references.

Where the danger is: frames of this file stand in the recorded stacks, so no function here may be called like a part of
a model; and an address is a name only as long as its storage lives.
"""
import functools
import json
import math

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

import vramtrack

LOSSES = {"cross_entropy", "log_softmax", "nll_loss", "cross_entropy_loss"}
FUSED = {"scaled_dot_product_attention"}
PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum", "linear", "mm", "addmm"}
READ_ONLY = {"__get__", "__set__", "size", "dim", "stride", "data_ptr", "item", "is_floating_point", "numel", "tolist"}


class Known:
    """One storage: where it lies, the rows that are right for it (the first is the best), what made it from what."""
    __slots__ = ("weak", "address", "bytes", "rows", "made_by", "shape", "parents", "fixed", "by_saving",
                 "kv_share")

    def __init__(self, storage, rows, made_by, shape, parents=()):
        self.weak = StorageWeakRef(storage)
        self.address, self.bytes = storage.data_ptr(), storage.nbytes()
        self.rows, self.made_by, self.shape, self.parents = tuple(rows), made_by, shape, parents
        self.fixed = False  # the script itself said it
        self.kv_share = 1.0  # of its bytes, where one product made queries too
        self.by_saving = False  # only autograd's saving has shown it so far, inside the call that runs

    def alive(self):
        return not self.weak.expired()


def tensors_in(value, depth=3):
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth - 1)
    elif depth and hasattr(value, "__dataclass_fields__"):
        yield from tensors_in(vars(value), depth - 1)


class Witness(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.known = {}  # address -> Known
        self.models, self.optimizers, self.caches, self.heads = [], [], [], set()
        self.saved = []  # seen by saving, in the call that runs
        self.calls = []  # (name, arguments) of the calls that run now, outermost first
        self.inside_optimizer = False
        self.highest = 0
        self.peak = None
        self.marks = []
        self.workspaces = {}
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.keep, self.give_back)

    # What a script calls.

    def watch(self, model=None, optimizer=None, cache=None, head=None):
        if model is not None:
            self.models.append(model)
        if cache is not None:
            self.caches.append(cache)
        if head is not None:
            self.heads.add(head.untyped_storage().data_ptr())
        if optimizer is not None:
            self.optimizers.append(optimizer)
            optimizer.register_step_pre_hook(functools.partial(self.turn, True))
            optimizer.register_step_post_hook(functools.partial(self.turn, False))

    def turn(self, inside, *_):
        self.inside_optimizer = inside

    def say(self, tensor, *rows):
        """The script knows better than any rule here."""
        with torch._C.DisableTorchFunction():
            for item in tensors_in(tensor):
                entry = self.note(item, rows, "the script", force=True)
                if entry:
                    entry.fixed = True

    def mark(self, name):
        with torch._C.DisableTorchFunction():
            vramtrack.mark(name)
            self.marks.append({"name": name, "labels": self.labels()})

    def __enter__(self):
        self.hooks.__enter__()
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        return self.hooks.__exit__(*exception)

    def write(self, path, **more):
        """At the end: what goes when cuBLAS is asked for its workspaces back was theirs all along."""
        def active():
            return {block["address"]: block["size"] for segment in torch.cuda.memory_snapshot()
                    for block in segment["blocks"] if block["state"] == "active_allocated"}
        before = active()
        torch._C._cuda_clearCublasWorkspaces()
        after = active()
        self.workspaces = {a: n for a, n in before.items() if a not in after}
        path.write_text(json.dumps({"marks": self.marks, "peak": self.peak, "blas": sorted(self.workspaces.items()),
                                    "highest": self.highest, **more}))

    # Storages.

    def find(self, tensor):
        if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
            return None
        entry = self.known.get(tensor.untyped_storage().data_ptr())
        return entry if entry is not None and entry.alive() else None

    def note(self, tensor, rows, made_by, parents=(), force=False):
        if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
            return None
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0:
            return None
        entry = self.known.get(storage.data_ptr())
        fresh = entry is None or not entry.alive() or entry.bytes != storage.nbytes() or entry.by_saving
        if not fresh and not force:
            return None
        if entry is not None and entry.alive() and entry.fixed:
            return entry
        entry = self.known[storage.data_ptr()] = Known(storage, rows, made_by, tuple(tensor.shape), parents)
        return entry

    def identities(self):
        """What is known for what it is, not for what it came from."""
        for model in self.models:
            for tensor in [*model.parameters(), *model.buffers()]:
                yield tensor, "parameters"
            for parameter in model.parameters():
                if parameter.grad is not None:
                    yield parameter.grad, "gradients"
        for optimizer in self.optimizers:
            for tensor in tensors_in(list(optimizer.state.values())):
                yield tensor, "optimizer_state"
        for cache in self.caches:
            for layer in getattr(cache, "layers", []):
                for tensor in (getattr(layer, "keys", None), getattr(layer, "values", None)):
                    if isinstance(tensor, torch.Tensor):
                        yield tensor, "kv_cache"

    def labels(self, dead=()):
        found = {e.address: [e.bytes, list(e.rows), e.made_by] for e in dead}
        found.update((a, [e.bytes, list(e.rows), e.made_by]) for a, e in self.known.items() if e.alive())
        for tensor, row in self.identities():
            if tensor.is_cuda and tensor.numel():
                storage = tensor.untyped_storage()
                found[storage.data_ptr()] = [storage.nbytes(), [row], "identity"]
        return found

    def look(self, where):
        """After each call: if allocated memory has been higher than ever, this is what was there."""
        stats = torch._C._cuda_memoryStats(torch.cuda.current_device())["allocated_bytes"]["all"]
        if stats["peak"] > self.highest:
            self.highest = stats["peak"]
            self.peak = {"where": where, "labels": self.labels(self.known.values()), "highest": self.highest,
                         "optimizer": self.inside_optimizer}
        elif stats["current"] < self.highest * 0.8:
            return
        for address in [a for a, e in self.known.items() if not e.alive()]:
            del self.known[address]

    # What happens.

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        if name in READ_ONLY:
            return func(*args, **kwargs)
        if name == "backward" and args and isinstance(args[0], torch.Tensor):
            return self.go_back(*args, **kwargs)
        self.calls.append((name, args, kwargs))
        try:
            result = func(*args, **kwargs)
        finally:
            self.calls.pop()
        if torch.cuda.is_initialized():
            self.made(name, args, kwargs, result)
            for entry in self.saved:
                entry.by_saving = False
            self.saved.clear()
            self.look(name)
        return result

    def made(self, name, args, kwargs, result):
        given = list(tensors_in([list(args), kwargs]))
        parents = [entry for entry in map(self.find, given) if entry is not None]
        if name in ("softmax", "_softmax", "_safe_softmax") and given:
            self.scores(self.find(given[0]))
        if name in FUSED:
            self.fused(args, kwargs)
        elif name in PRODUCTS and len(given) > 1:
            self.share(given[0], given[1], given[1])  # V is as large as K
        rows = self.rows_of(name, args, kwargs, given, parents)
        for tensor in tensors_in(result):
            if tensor.is_cuda:
                self.note(tensor, rows, name, parents)

    def rows_of(self, name, args, kwargs, given, parents):
        """What the result of a call is, seen from the call."""
        if self.inside_optimizer:
            return ("workspace", "optimizer_state")
        if name in LOSSES:
            return ("activations/logits",)
        if name in ("softmax", "_softmax", "_safe_softmax"):
            return ("activations/logits",) if self.over_vocabulary(parents) else ("attention",)
        if name in PRODUCTS:
            weight = given[1] if len(given) > 1 else None
            if weight is not None and weight.is_cuda and weight.untyped_storage().data_ptr() in self.heads:
                return ("activations/logits",)
            if len(given) > 1 and parents and "attention" in parents[0].rows:
                self.keys(self.find(given[1]))
            return ("activations",)
        if not given and name in ("randint", "arange", "tensor", "rand", "randn", "ones", "zeros", "full"):
            return ("inputs", "activations")
        if name in ("to", "cuda", "copy_") and given and not given[0].is_cuda:
            return ("inputs",) if given[0].numel() > 1 else ("inputs", "activations", "workspace")
        if parents and name not in ("embedding", "index_select"):
            if self.over_vocabulary(parents):
                return ("activations/logits",)
            if parents[0].rows[0] == "attention":
                return ("attention",)
            if name in ("cat", "repeat", "expand", "contiguous", "clone", "reshape", "to") and parents[0].rows[0] in (
                    "kv_cache", "activations/kv"):
                return ("activations/kv", "activations")
            if all(p.rows[0] == "inputs" for p in parents):
                return ("inputs", "activations")
        return ("activations",)

    @staticmethod
    def over_vocabulary(parents):
        return bool(parents) and parents[0].rows[0] == "activations/logits"

    def scores(self, entry, depth=8):
        """A softmax reads this: it was a score, and so was what it was made from, back to the product of Q and K."""
        if entry is None or depth == 0 or entry.rows[0] in ("activations/logits", "attention") or entry.fixed:
            return
        if entry.rows[0] in ("parameters", "kv_cache", "activations/kv"):
            return
        entry.rows = ("attention",)
        if entry.made_by in PRODUCTS:
            for key in entry.parents[1:2]:
                self.keys(key)
            return
        for parent in entry.parents:
            if len(parent.shape) >= 2 and len(entry.shape) >= 2 and parent.shape[-1] == entry.shape[-1]:
                self.scores(parent, depth - 1)

    def share(self, query, key, value):
        """Where one product made Q, K and V together: how much of it K and V are."""
        entry = self.find(query)
        if entry is not None and entry is self.find(key):
            entry.kv_share = (key.numel() * key.element_size() + value.numel() * value.element_size()) / entry.bytes

    def keys(self, entry, depth=6):
        """K or V. Where one product made Q, K and V together, it is what most of it is."""
        if entry is None or depth == 0 or entry.fixed or entry.rows[0] not in ("activations",):
            return
        if entry.kv_share <= 0.5:
            return
        entry.rows = ("activations/kv", "activations", "kv_cache")
        if entry.made_by not in PRODUCTS:
            for parent in entry.parents:
                self.keys(parent, depth - 1)

    def fused(self, args, kwargs):
        names = ("query", "key", "value", "attn_mask")
        given = dict(zip(names, args)) | {k: v for k, v in kwargs.items() if k in names}
        if all(isinstance(given.get(name), torch.Tensor) for name in names[:3]):
            self.share(given["query"], given["key"], given["value"])
        for name in ("key", "value"):
            self.keys(self.find(given.get(name)))
        mask = self.find(given.get("attn_mask"))
        if mask is not None and not mask.fixed:
            self.scores(mask)

    # saved_tensors_hooks: what autograd keeps.

    def keep(self, tensor):
        with torch._C.DisableTorchFunction():
            if tensor.is_cuda:
                name = self.calls[-1][0] if self.calls else "saved"
                entry = None if self.find(tensor) else self.note(tensor, self.rows_of_saved(tensor), name)
                if entry is not None and self.calls:
                    entry.by_saving = True
                    self.saved.append(entry)
            return tensor.detach()  # the tensor itself would keep its own node alive

    @staticmethod
    def give_back(tensor):
        return tensor

    def rows_of_saved(self, tensor):
        """What an operator makes beside its result and saves: casts of weights, statistics, masks, log-sum-exps."""
        if not self.calls:
            return ("activations",)
        name, args, kwargs = self.calls[-1]
        if name in LOSSES:
            return ("activations/logits",)
        given = list(tensors_in([list(args), kwargs]))
        if name in FUSED:
            query, key = given[0], given[1]
            if tensor.dim() >= 3 and tensor.shape[-1] == query.shape[-1] and tensor.shape[-2] in (
                    query.shape[-2], key.shape[-2]):
                return ("activations", "activations/kv")
            if tensor.dim() >= 3 and tensor.shape[-2] == query.shape[-1]:
                return ("activations/kv", "activations")  # K, transposed for the product
            return ("attention",)
        if "dropout" in name:
            parent = self.find(given[0])
            return parent.rows if parent is not None else ("activations",)
        if name in PRODUCTS:  # an operand cast for autocast is what it was cast from
            for entry in map(self.find, given):
                same = entry is not None and math.prod(entry.shape) == tensor.numel()
                if same and entry.rows[0] == "attention":
                    return entry.rows
        for item in given:
            if isinstance(item, torch.nn.Parameter) and item.numel() == tensor.numel() and item.dtype != tensor.dtype:
                return ("activations", "workspace")  # a weight cast for autocast
        return ("activations",)

    # The backward pass.

    def go_back(self, loss, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        handles = self.follow(loss.grad_fn)
        try:
            with self:
                torch.autograd.backward(loss, gradient, retain_graph, create_graph, inputs=inputs)
        finally:
            for handle in handles:
                handle.remove()
        with torch._C.DisableTorchFunction():
            self.look("backward")

    def follow(self, root):
        handles, seen, waiting = [], set(), [root]
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            following = [following for following, _ in node.next_functions]
            waiting.extend(following)
            leaves = tuple(self.is_leaf(f) for f in following)
            handles.append(node.register_hook(functools.partial(self.went_back, node.name(), leaves)))
        return handles

    @staticmethod
    def is_leaf(node):
        for _ in range(3):
            if node is None:
                return False
            if node.name().endswith("AccumulateGrad"):
                return True
            if not node.name().startswith(("TBackward", "TransposeBackward", "ViewBackward", "ToCopyBackward")):
                return False
            node = node.next_functions[0][0]
        return False

    def went_back(self, name, leaves, results, given):
        with torch._C.DisableTorchFunction():
            for position, tensor in enumerate(results):
                if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                    self.note(tensor, self.rows_back(name, leaves, position, tensor, given), name)
            self.look(name)

    def rows_back(self, name, leaves, position, tensor, given):
        if position < len(leaves) and leaves[position]:
            return ("gradients", "activations/backward")
        if "Softmax" in name and "LogSoftmax" not in name:
            return ("attention",)
        if name.startswith(("LogSoftmax", "NllLoss", "CrossEntropy")):
            return ("activations/logits",)
        parents = [e for e in map(self.find, given) if e is not None]
        if parents and name.startswith(("MaskedFill", "Mul", "Div", "Add", "ToCopy", "Where", "NativeDropout", "Slice",
                                        "View", "UnsafeView", "Reshape", "Clone")):
            if parents[0].rows[0] in ("attention", "activations/logits") and math.prod(tensor.shape) * 4 >= math.prod(
                    parents[0].shape):
                return parents[0].rows
        if name.startswith(("Bmm", "UnsafeView", "Expand")):
            return ("activations/backward", "attention")
        return ("activations/backward",)
