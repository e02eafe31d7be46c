"""Jobs that do not leak although their memory moves, ramps up, or is kept on purpose: nothing may be reported."""
import collections
import random

import torch
import vramtrack
from torch import nn
from torch.utils.checkpoint import checkpoint

STEPS = 60
HEALTHY = {}


def healthy(function=None, *, quick=False):
    if function is None:
        return lambda f: healthy(f, quick=quick)
    function.quick = quick
    HEALTHY[function.__name__] = function
    return function


def features(batch=32):
    return torch.randn(batch, 256, device="cuda")


def small_model():
    return nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8)).cuda()


class Job:
    def __init__(self, optimizer=torch.optim.AdamW):
        self.model = small_model()
        self.optimizer = optimizer(self.model.parameters(), lr=1e-3)

    def step(self, batch=32):
        loss = self.model(features(batch)).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


@healthy(quick=True)
def plain_training():
    job = Job()
    for _ in range(STEPS):
        job.step()


@healthy(quick=True)
def warm_up():
    job, kept = Job(), []
    for step in range(STEPS):
        job.step()
        if step < 8:
            kept.append(features())


@healthy(quick=True)
def bounded_lru():
    job, cache = Job(), collections.OrderedDict()
    for step in range(STEPS):
        job.step()
        cache[step] = torch.ones(100 + random.randrange(40), 100, device="cuda")
        if len(cache) > 16:
            cache.popitem(last=False)


@healthy(quick=True)
def variable_lengths():
    job = Job()
    generator = random.Random(1)
    for _ in range(STEPS):
        job.step(generator.randrange(8, 256))


@healthy
def evaluation_now_and_then():
    job = Job()
    for step in range(STEPS):
        job.step()
        if step % 10 == 9:
            with torch.no_grad():
                outputs = [job.model(features()) for _ in range(5)]
                torch.cat(outputs).mean().item()


@healthy
def scheduler():
    job = Job(torch.optim.Adam)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(job.optimizer, STEPS)
    for _ in range(STEPS):
        job.step()
        schedule.step()


@healthy(quick=True)
def average_from_step_20():
    job, average = Job(), None
    for step in range(STEPS):
        job.step()
        if step == 20:
            average = [p.detach().clone() for p in job.model.parameters()]
        elif average is not None:
            for mean, p in zip(average, job.model.parameters()):
                mean.lerp_(p.detach(), 0.01)


@healthy(quick=True)
def cache_within_a_generation():
    projection = nn.Linear(256, 256).cuda()
    token = 0
    with torch.no_grad():
        for _ in range(4):
            keys = torch.empty(1, 0, 256, device="cuda")
            for _ in range(24):
                vramtrack.step(token)
                token += 1
                keys = torch.cat([keys, projection(torch.randn(1, 1, 256, device="cuda"))], dim=1)


@healthy
def one_long_generation():
    """The cache still grows when the recording ends: replaced by a larger one at each token, not kept."""
    projection = nn.Linear(256, 256).cuda()
    with torch.no_grad():
        keys = torch.empty(1, 0, 256, device="cuda")
        for token in range(STEPS):
            vramtrack.step(token)
            keys = torch.cat([keys, projection(torch.randn(1, 1, 256, device="cuda"))], dim=1)


@healthy
def gradient_accumulation():
    job = Job()
    for _ in range(STEPS):
        for _ in range(3):
            job.model(features()).square().mean().backward()
        job.optimizer.step()
        job.optimizer.zero_grad()


@healthy
def prefetch_ramp():
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * 64, 256))
    loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=1, pin_memory=True, prefetch_factor=4)
    job = Job()
    for (batch,) in loader:
        batch.to("cuda", non_blocking=True)
        job.step()


@healthy
def streams_with_workspaces():
    job = Job()
    streams = [torch.cuda.Stream() for _ in range(3)]
    for step in range(STEPS):
        with torch.cuda.stream(streams[step % 3]):
            job.step()


@healthy
def convolutions():
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        model(torch.randn(4, 3, 32 + 8 * (step % 3), 32, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@healthy
def last_twenty_outputs():
    job, recent = Job(), collections.deque(maxlen=20)
    for _ in range(STEPS):
        job.step()
        with torch.no_grad():
            recent.append(job.model(features()))


@healthy
def losses_as_numbers():
    job, losses = Job(), []
    for _ in range(STEPS):
        losses.append(job.step().item())


@healthy
def mixed_precision():
    job, scaler = Job(), torch.amp.GradScaler("cuda")
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = job.model(features()).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(job.optimizer)
        scaler.update()
        job.optimizer.zero_grad()


@healthy
def checkpointing():
    job = Job()
    for _ in range(STEPS):
        checkpoint(job.model, features().requires_grad_(), use_reentrant=False).square().mean().backward()
        job.optimizer.step()
        job.optimizer.zero_grad()


@healthy
def layers_unfrozen_early():
    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))).cuda().requires_grad_(False)
    model[3].requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        if step in (5, 10, 15):
            model[2 - (step - 5) // 5].requires_grad_(True)
        model(features()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@healthy
def graph_replays():
    model = small_model()
    static = features()
    with torch.no_grad():
        model(static)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(static)
        for step in range(STEPS):
            vramtrack.step(step)
            static.copy_(features())
            graph.replay()


@healthy
def graphs_for_a_few_shapes():
    """Captured when a shape is first met; all shapes are met within the first quarter."""
    model, graphs = small_model(), {}
    with torch.no_grad():
        model(features())
        for step in range(STEPS):
            vramtrack.step(step)
            batch = 16 * (1 + min(step // 2, 6) if step < 15 else 1 + step % 7)
            if batch not in graphs:
                static, graph = features(batch), torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    outputs = model(static)
                graphs[batch] = graph, static, outputs
            graph, static, _ = graphs[batch]
            static.copy_(features(batch))
            graph.replay()


@healthy
def replay_buffer_that_fills():
    job, buffer = Job(), []
    for step in range(STEPS):
        job.step()
        sample = features(8)
        if len(buffer) < 25:
            buffer.append(sample)
        else:
            buffer[step % 25] = sample


@healthy
def curriculum():
    """Batches become longer and longer; nothing of them stays."""
    job = Job()
    for step in range(STEPS):
        job.step(8 + 4 * step)


@healthy
def noisy_pool_of_buffers():
    job, pool = Job(), {}
    generator = random.Random(3)
    for _ in range(STEPS):
        job.step()
        pool[generator.randrange(12)] = features(generator.randrange(8, 64))
        if generator.random() < 0.3 and pool:
            pool.pop(next(iter(pool)))
