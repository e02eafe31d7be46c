"""Training in plain PyTorch."""
from scenarios import scenario
from witness import live_cuda_bytes, rounded, tensor_bytes

MIB = 1 << 20
WORKSPACE_HOPPER = 32 * MIB


def _parameters(model):
    return sum(rounded(p.nbytes) for p in model.parameters())


@scenario()
def linear_adamw(checks):
    """One Linear, one AdamW step: every byte has its formula."""
    import torch
    model = torch.nn.Linear(1000, 500, device="cuda")
    parameters = rounded(1000 * 500 * 4) + rounded(500 * 4)
    checks.equal("parameters", torch.cuda.memory_allocated(), parameters)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(64, 1000, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    checks.equal("loss", type(loss.item()), float)
    inputs = rounded(64 * 1000 * 4)
    checks.true("has a graph", loss.grad_fn is not None)
    del loss
    checks.true("the peak has a cuBLAS workspace", torch.cuda.max_memory_allocated() > WORKSPACE_HOPPER + 2 * parameters)
    torch._C._cuda_clearCublasWorkspaces()
    # parameters, gradients, two moments, the input; the step counts are on the CPU
    checks.equal("after the step", torch.cuda.memory_allocated(), inputs + 4 * parameters)
    optimizer.zero_grad(set_to_none=True)
    checks.equal("after zero_grad", torch.cuda.memory_allocated(), inputs + 3 * parameters)
    checks.equal("all of it in tensors", torch.cuda.memory_allocated(), live_cuda_bytes())
    checks.counters_agree("end")


@scenario(device="a100-40g")
def workspace_of_ampere(checks):
    """PyTorch's cuBLAS workspace is 8.125 MiB before Hopper."""
    import torch
    a = torch.empty(64, 64, device="cuda")
    before = torch.cuda.memory_allocated()
    b = a @ a
    checks.equal("workspace", torch.cuda.max_memory_allocated() - before - rounded(b.nbytes), 8 * MIB + 128 * 1024)


@scenario()
def gpt_five_steps(checks):
    """A small GPT, five AdamW steps, built on the CPU and moved."""
    import torch
    from models import Gpt, train
    model = Gpt()
    host = sum(p.nbytes for p in model.parameters())
    model.cuda()
    checks.equal("parameters", torch.cuda.memory_allocated(), _parameters(model))
    optimizer = torch.optim.AdamW(model.parameters(), fused=False, foreach=True)
    losses = train(model, optimizer)
    checks.equal("losses", len(losses), 5)
    torch._C._cuda_clearCublasWorkspaces()
    state = [t for s in optimizer.state.values() for t in s.values() if t.is_cuda]
    checks.equal("steady state", torch.cuda.memory_allocated(), _parameters(model) + tensor_bytes(state))
    checks.equal("two moments", sum(t.nbytes for t in state), 2 * host)
    checks.counters_agree("end")


@scenario()
def optimizers(checks):
    """SGD with momentum, AdamW loop / foreach / fused: state has its formula, temporaries differ."""
    import torch
    from models import Gpt, train
    for name, make, moments in (
            ("sgd", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), 1),
            ("loop", lambda p: torch.optim.AdamW(p, foreach=False), 2),
            ("foreach", lambda p: torch.optim.AdamW(p, foreach=True), 2),
            ("fused", lambda p: torch.optim.AdamW(p, fused=True), 2)):
        model = Gpt().cuda()
        optimizer = make(model.parameters())
        train(model, optimizer, steps=2)
        state = [t for s in optimizer.state.values() for t in s.values()
                 if torch.is_tensor(t) and t.is_cuda and t.dim() > 0]
        checks.equal(f"{name}: moments", tensor_bytes(state), moments * _parameters(model))
        checks.counters_agree(name)
        del model, optimizer, state


@scenario()
def attention_kinds(checks):
    """SDPA math, memory-efficient and flash, and eager attention, in bfloat16."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from models import Gpt
    peaks = {}
    for name, backend in (("math", SDPBackend.MATH), ("efficient", SDPBackend.EFFICIENT_ATTENTION),
                          ("flash", SDPBackend.FLASH_ATTENTION), ("eager", None)):
        model = Gpt(layers=1, attention="eager" if backend is None else "sdpa", context=1024).cuda().bfloat16()
        ids = torch.randint(0, 512, (2, 1024)).cuda()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        if backend is None:
            model(ids).backward()
        else:
            with sdpa_kernel(backend):
                model(ids).backward()
        peaks[name] = torch.cuda.max_memory_allocated() - before
        checks.counters_agree(name)
        del model
    scores = 2 * 4 * 1024 * 1024 * 2
    checks.true("flash needs no scores", peaks["math"] - peaks["flash"] > scores, str(peaks))
    checks.true("efficient needs no scores", peaks["math"] - peaks["efficient"] > scores, str(peaks))
    checks.numbers.update(peaks)


@scenario()
def default_attention(checks):
    """Attention as PyTorch chooses it on this card, forward and backward."""
    import torch
    from models import Gpt
    model = Gpt(layers=1, context=256).cuda().bfloat16()
    model(torch.randint(0, 512, (2, 256)).cuda()).backward()
    checks.equal("gradients", all(p.grad is not None for p in model.parameters()), True)
    checks.counters_agree("end")


@scenario()
def autocast_and_scaler(checks):
    """bfloat16 autocast, and float16 with a GradScaler."""
    import torch
    from models import Gpt, train
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, steps=2, autocast=torch.bfloat16)
    checks.counters_agree("bfloat16")
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    train(model, optimizer, steps=3, autocast=torch.float16, scaler=scaler)
    checks.equal("scale", scaler.get_scale(), 1024.0)
    checks.counters_agree("float16")


@scenario()
def checkpointing(checks):
    """Activation checkpointing of both kinds costs less memory than none."""
    import torch
    from models import Gpt
    peaks = {}
    for kind in (None, "reentrant", "non-reentrant"):
        model = Gpt(layers=6, checkpoint=kind).cuda()
        ids = torch.randint(0, 512, (16, 128)).cuda()
        model(ids).backward()
        model.zero_grad(set_to_none=True)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        model(ids).backward()
        peaks[kind] = torch.cuda.max_memory_allocated() - before
        del model, ids
    checks.numbers.update({str(k): v for k, v in peaks.items()})
    checks.true("reentrant saves", peaks["reentrant"] < peaks[None] / 1.5, str(peaks))
    checks.true("non-reentrant saves", peaks["non-reentrant"] < peaks[None] / 1.5, str(peaks))
    checks.counters_agree("end")


@scenario()
def accumulation(checks):
    """Gradient accumulation keeps the peak of one batch; a doubled batch does not."""
    import torch
    from models import Gpt, train
    peaks = {}
    for name, batch, accumulate in (("one", 32, 1), ("accumulated", 32, 4), ("doubled", 64, 1)):
        model = Gpt(layers=4, width=64).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, optimizer, steps=1, batch=batch, accumulate=accumulate)
        torch.cuda.reset_peak_memory_stats()
        train(model, optimizer, steps=1, batch=batch, accumulate=accumulate)
        peaks[name] = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        del model, optimizer
    checks.numbers.update(peaks)
    checks.true("doubled batch costs more", peaks["doubled"] > 1.6 * peaks["one"], str(peaks))
    checks.true("accumulation does not", peaks["accumulated"] < 1.4 * peaks["one"], str(peaks))


@scenario()
def large_vocabulary(checks):
    """Cross entropy over 131,072 words: the logits and what the loss makes of them have a formula."""
    import torch
    from torch.nn import functional as F
    tokens, words = 256, 131_072  # 128 MiB of logits: a segment of their own
    logits = torch.empty(tokens, words, device="cuda", requires_grad=True)
    targets = torch.randint(0, words, (tokens,)).cuda()
    before = torch.cuda.memory_allocated()
    loss = F.cross_entropy(logits, targets)
    # saved for backward: the log-softmax, and the total weight of the loss
    checks.equal("after forward", torch.cuda.memory_allocated() - before,
                 rounded(tokens * words * 4) + rounded(4) + rounded(4))
    loss.backward()
    checks.equal("gradient", logits.grad.nbytes, tokens * words * 4)
    checks.counters_agree("end")


@scenario()
def reading_values(checks):
    """What a training loop reads back does not stop it."""
    import torch
    x = torch.randn(100, device="cuda")
    old = torch.full((4000,), 1 << 62).cuda()
    address = old.data_ptr()
    del old
    drawn = torch.randint(0, 9, (4000,), device="cuda")
    checks.equal("a block is used again", drawn.data_ptr(), address)
    checks.equal("what was drawn hides what was there", int(drawn.max()), 0)
    checks.equal("counts of it", torch.bincount(drawn).dim(), 1)
    checks.equal("nonzero of unknown values", x.nonzero().shape[1], 1)
    checks.equal("unique", x.unique().dim(), 1)
    checks.equal("sorted", x.sort().values.shape, x.shape)
    checks.equal("is finite", bool(torch.isfinite(x).all()) in (True, False), True)
    probabilities = torch.softmax(torch.randn(3, 50, device="cuda"), -1)
    checks.equal("drawn", torch.multinomial(probabilities, 1).shape, (3, 1))
    model = torch.nn.Linear(4, 4).cuda()
    model(x[:4]).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    checks.equal("norm", type(norm.item()), float)
    checks.equal("text", "device='cuda:0'" in repr(x), True)
