"""A training loop in PyTorch on CPU tensors. Prints, as JSON, what its memory holds."""
import ctypes
import gc
import json
import threading

import torch

allocations = ctypes.CDLL(None).pretend_allocations
attributed_module = ctypes.CDLL(None).attributed_module
text_of = ctypes.CDLL(None).text_of
text_of.restype = ctypes.c_char_p
attributed = []  # to which module, in the order of the calls


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
        self.norm = torch.nn.LayerNorm(64)
        self.register_buffer("mask", torch.ones(64))
        self.register_buffer("k_cache", torch.zeros(8, 64))
        allocations(1)  # the first one brings the helper, which meets a block that is no part of a model yet

    def forward(self, x):
        def inside():  # a frame of its own, without `self`
            allocations(1)
            attributed.append(attributed_module())

        inside()
        return self.norm(torch.relu(self.linear(x)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.head = torch.nn.Linear(64, 4)
        self.tied = self.head  # the same module by another name

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Hostile:
    """What a walk over a program's objects may meet."""

    @property
    def __class__(self):
        raise RuntimeError("asked for my class")

    def __getattr__(self, name):
        raise RuntimeError("asked for " + name)


hostile = [Hostile() for _ in range(10)]
fake = None
try:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.nn.Linear(8, 8)
except ImportError:
    pass

def not_a_method(model):  # `model` is its first local variable, and it is no method of it
    allocations(1)
    outside.append(attributed_module())


outside = []
model = Model()
ctypes.CDLL(None).vramtrack_mark(b"built")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
before = threading.active_count()

# Tuples that grow while somebody else refers to them raise SystemError.
broken = []
done = threading.Event()


def build_tuples():
    while not done.is_set():
        try:
            tuple(n for n in range(100))
        except SystemError as error:
            broken.append(str(error))


builder = threading.Thread(target=build_tuples)
builder.start()
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).sum().backward()
    allocations(70)
    optimizer.step()
    not_a_method(model)

done.set()
builder.join()
expected = {}


def note(name, tensor):
    storage = tensor.untyped_storage()
    expected[name] = [storage.data_ptr(), storage.nbytes()]


for name, parameter in model.named_parameters():
    note("parameters:" + name, parameter)
    note("gradients:" + name, parameter.grad)
    for key, tensor in optimizer.state[parameter].items():
        note("optimizer_state:%s of %s" % (key, name), tensor)
for name, buffer in model.named_buffers():
    kind = "kv_cache:" if "k_cache" in name else "parameters:"
    note(kind + name, buffer)

def names(modules):
    return [text_of(module).decode() for module in modules]


# The helper keeps nothing alive.
import weakref

watch = weakref.ref(model.blocks[0].linear.weight)
del model, optimizer, parameter, name, buffer, tensor
gc.collect()
print(json.dumps({"expected": expected, "kept": watch() is not None,
                  "threads": threading.active_count() - before, "garbage": len(gc.garbage),
                  "broken": broken, "attributed": names(attributed), "outside": names(outside)}))
keep = []  # the storages are free now; at_exit finds nothing new to say about them
