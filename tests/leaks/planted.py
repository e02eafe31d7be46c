"""Jobs that leak, each in its own way. `# leaks: JOB` ends the lines that allocate what is never given back.

`held` is what the chain of holders has to say, as a regular expression; None where no Python object holds the memory.
"""
import collections
import ctypes
import functools
import gc
import os
import threading

import torch
import vramtrack
from torch import nn

STEPS = 50
PLANTED = {}
WITNESS = {}  # of the graph pools, by PyTorch's own account


def planted(held, quick=False, kind="live growth", file=__file__, site=None):
    def register(function):
        function.held, function.quick, function.kind, function.file, function.site = held, quick, kind, file, site
        PLANTED[function.__name__] = function
        return function
    return register


def features(batch=32):
    return torch.randn(batch, 256, device="cuda")


class Job:
    """A small training job; what leaks is added to it."""

    def __init__(self, **settings):
        self.model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, **settings)

    def step(self):
        loss = self.model(features()).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


@planted(r"loss_accumulation\(\): total\.grad_fn", quick=True)
def loss_accumulation():
    job, total = Job(), 0
    for _ in range(STEPS):
        job.step()
        total = total + job.model(torch.randn(32, 256, device="cuda")).square().mean()  # leaks: loss_accumulation


@planted(None, quick=True, kind="fragmentation", site="reserved memory")
def ever_larger_buffers():
    """No leak: each buffer is freed at once, but none fits where the smaller one before it was."""
    job = Job()
    for step in range(STEPS):
        job.step()
        torch.empty((24 + 2 * step) << 20, dtype=torch.uint8, device="cuda")


class Trainer(Job):
    def __init__(self):
        super().__init__()
        self.history = []

    def remember(self):
        self.history.append(self.model(features()).detach())  # leaks: list_of_outputs


@planted(r"list_of_outputs\(\): trainer\.history\[\d+\]$", quick=True)
def list_of_outputs():
    trainer = Trainer()
    for _ in range(STEPS):
        trainer.step()
        trainer.remember()


def fails(model):
    activations = model[0](features())  # leaks: exception_frame, chained_traceback
    raise RuntimeError(f"not {activations.shape[0]}")


@planted(r"exception_frame\(\): errors\[\d+\]\.__traceback__.* fails\(\): activations$", quick=True)
def exception_frame():
    job, errors = Job(), []
    for _ in range(STEPS):
        job.step()
        try:
            with torch.no_grad():
                fails(job.model)
        except RuntimeError as error:
            errors.append(error)


def wraps(model):
    try:
        with torch.no_grad():
            fails(model)
    except RuntimeError as error:
        raise ValueError("a worse one") from error


@planted(r"planted\.FAILURES\[\d+\]\.__(cause|context)__\.__traceback__.* fails\(\): activations$")
def chained_traceback():
    job = Job()
    for _ in range(STEPS):
        job.step()
        try:
            wraps(job.model)
        except ValueError as error:
            FAILURES.append(error)


FAILURES = []


class Sample:
    def __init__(self):
        self.itself = self
        self.pixels = torch.randn(32, 256, device="cuda")  # leaks: reference_cycle


@planted(r"reference cycle.*Sample\.itself is the .*Sample, which holds .*Sample\.pixels$", quick=True)
def reference_cycle():
    gc.disable()
    job = Job()
    for _ in range(STEPS):
        job.step()
        Sample()
    vramtrack.holders()  # a search of all objects takes longer than a step may be held up


MASKS = {}


def mask_for(length):
    if length not in MASKS:
        MASKS[length] = torch.ones(length, length, device="cuda").tril()  # leaks: cache_without_bound
    return MASKS[length]


@planted(r"planted\.MASKS\[\d+\]$")
def cache_without_bound():
    job = Job()
    for step in range(STEPS):
        job.step()
        mask_for(100 + step)


def watch(layer):
    seen = []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output.clone()))  # leaks: hook_closure


@planted(r"_forward_hooks.* closure variable seen\[\d+\]$", quick=True)
def hook_closure():
    job = Job()
    watch(job.model[0])
    with torch.no_grad():
        for step in range(STEPS):
            vramtrack.step(step)
            job.model(features())


@planted(r"retained_graph\(\): losses\[\d+\]\.grad_fn")
def retained_graph():
    job, losses = Job(), []
    for _ in range(STEPS):
        hidden = job.model[0](torch.randn(32, 256, device="cuda"))  # leaks: retained_graph
        loss = job.model[2](job.model[1](hidden)).square().mean()  # leaks: retained_graph
        loss.backward(retain_graph=True)
        job.optimizer.step()
        job.optimizer.zero_grad()
        losses.append(loss)


@planted(r"growing_optimizer\(\): job\.optimizer\.param_groups\[\d+\]\['params'\]\[0\]$")
def growing_optimizer():
    job = Job()
    for _ in range(STEPS):
        job.step()
        adapter = nn.Parameter(torch.zeros(64, 64, device="cuda"))  # leaks: growing_optimizer
        job.optimizer.add_param_group({"params": [adapter]})


def batches():
    buffer = torch.randn(32, 256, device="cuda")  # leaks: open_generators
    while True:
        yield buffer + 1


@planted(r"open_generators\(\): streams\[\d+\] .* batches\(\): buffer$")
def open_generators():
    job, streams = Job(), []
    for _ in range(STEPS):
        job.step()
        stream = batches()
        next(stream)
        streams.append(stream)


@planted(r"pinned_batches\(\): kept\[\d+\]$", kind="host pinned growth", site="pin_memory.py")
def pinned_batches():
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * 64, 256))
    loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=1, pin_memory=True)
    job, kept = Job(), []
    for (batch,) in loader:
        job.step()
        kept.append(batch)


class Runner:
    def __init__(self, model):
        self.model, self.graphs = model, {}

    def capture(self, batch):
        graph = torch.cuda.CUDAGraph()
        inputs = torch.zeros(batch, 256, device="cuda")  # leaks: graph_per_shape
        with torch.cuda.graph(graph):  # leaks: graph_per_shape
            outputs = self.model(inputs)
        self.graphs[batch] = (graph, inputs, outputs)


@planted(r"graph_per_shape\(\): runner\.graphs\[\d+\]\[2\]$", kind="graph pools")
def graph_per_shape():
    job = Job()
    runner = Runner(job.model)
    with torch.no_grad():
        job.model(features())
        for step in range(STEPS):
            if step == STEPS - 1:  # what is there at the last boundary between two steps
                sizes = collections.Counter()
                for segment in torch.cuda.memory_snapshot():
                    sizes[segment["segment_pool_id"]] += segment["total_size"]
                del sizes[0, 0]
                WITNESS.update(graphs=len(runner.graphs), pools=len(sizes), bytes=sum(sizes.values()))
            vramtrack.step(step)
            runner.capture(32 + step)


class Scale(torch.autograd.Function):
    contexts = []

    @staticmethod
    def forward(context, x):
        context.halves = x / 2  # leaks: function_context
        Scale.contexts.append(context)
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


@planted(r"planted\.Scale\.contexts\[\d+\]\.halves$")
def function_context():
    job = Job()
    for _ in range(STEPS):
        Scale.apply(job.model(features())).square().mean().backward()
        job.optimizer.step()
        job.optimizer.zero_grad()


@planted(r"evaluation_with_grad\(\): predictions\[\d+\]", quick=True)
def evaluation_with_grad():
    job, predictions = Job(), []
    for _ in range(10):
        job.step()
    for step in range(STEPS):
        vramtrack.step(100 + step)
        predictions.append(job.model(torch.randn(32, 256, device="cuda")))  # leaks: evaluation_with_grad


class Server:
    def __init__(self):
        self.sessions = {}

    def generate(self, name):
        keys = torch.empty(0, 4, 64, device="cuda")
        for _ in range(8):
            keys = torch.cat([keys, torch.randn(16, 4, 64, device="cuda")])  # leaks: cache_per_request
        self.sessions[name] = keys


@planted(r"cache_per_request\(\): server\.sessions\['request \d+'\]$")
def cache_per_request():
    server = Server()
    for step in range(STEPS):
        vramtrack.step(step)
        server.generate(f"request {step}")


@planted(None, quick=True, kind="library growth", file=os.path.join(os.path.dirname(__file__), "leaky_library.cpp"))
def other_library():
    library = ctypes.CDLL(os.environ["LEAKY_LIBRARY"])
    job = Job()
    for _ in range(STEPS):
        job.step()
        library.leaky_resize()


@functools.lru_cache(maxsize=None)
def positions(length):
    return torch.arange(length, device="cuda")  # leaks: unbounded_lru_cache


@planted(r"planted\.positions -> inside .*lru_cache_wrapper\[\d+\]$")
def unbounded_lru_cache():
    job = Job()
    for step in range(STEPS):
        job.step()
        positions(100 + step)


class Slotted:
    __slots__ = ("reward", "state")

    def __init__(self):
        self.reward = 1.0
        self.state = torch.randn(32, 256, device="cuda")  # leaks: replay_buffer


@planted(r"planted\.REPLAY\[\d+\]\.state$")
def replay_buffer():
    job = Job()
    for _ in range(STEPS):
        job.step()
        REPLAY.append(Slotted())


REPLAY = collections.deque()


def prefetch(ready, done, store):
    while ready.wait() and not done.is_set():
        ready.clear()
        store.append(torch.randn(32, 256, device="cuda"))  # leaks: thread_keeps
        store_grew.set()


store_grew = threading.Event()


@planted(r"(prefetch|thread_keeps)\(\): store\[\d+\]$")
def thread_keeps():
    job, store = Job(), []
    ready, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=prefetch, args=(ready, done, store))
    thread.start()
    for _ in range(STEPS):
        job.step()
        store_grew.clear()
        ready.set()
        store_grew.wait()
    done.set()
    ready.set()
    thread.join()


@planted(r"chained_gradients\(\): previous\.grad_fn")
def chained_gradients():
    """State carried from step to step without detach()."""
    job = Job()
    cell = nn.GRUCell(8, 8).cuda()
    previous = torch.zeros(32, 8, device="cuda")
    for _ in range(STEPS):
        job.step()
        previous = torch.tanh(job.model(torch.randn(32, 256, device="cuda")) + previous)  # leaks: chained_gradients
    return cell
