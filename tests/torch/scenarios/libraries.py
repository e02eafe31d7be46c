"""What PyTorch does through NVIDIA's other libraries, and what is refused by name."""
from scenarios import scenario
from witness import rounded

MIB = 1 << 20


@scenario()
def convolution(checks):
    """Convolution and batch normalization through cuDNN, forward and backward."""
    import torch
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU()).cuda()
    x = torch.randn(8, 3, 64, 64, device="cuda")
    before = torch.cuda.memory_allocated()
    y = model(x)
    image = rounded(8 * 16 * 64 * 64 * 4)
    # kept for backward: what the convolution gave (into the normalization), what the ReLU gave, two statistics
    statistics = 2 * rounded(16 * 4)
    checks.equal("activations", torch.cuda.memory_allocated() - before, 2 * image + statistics)
    y.sum().backward()
    checks.equal("gradients", all(p.grad is not None for p in model.parameters()), True)
    checks.counters_agree("end")


@scenario()
def cudnn_attention(checks):
    """cuDNN's attention saves no scores."""
    import torch
    from torch.nn import functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q, k, v = (torch.randn(2, 4, 1024, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    before = torch.cuda.memory_allocated()
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        kept = torch.cuda.memory_allocated() - before
        # the output, the log-sum-exp in float, at most a few words of random state
        checks.true("kept for backward", y.nbytes + 2 * 4 * 1024 * 4 <= kept <= y.nbytes + 2 * 4 * 1024 * 4 + 4096, str(kept))
        y.sum().backward()
    checks.equal("gradient", q.grad.shape, q.shape)
    checks.counters_agree("end")


@scenario()
def cuda_graph(checks):
    """A captured graph keeps its memory in a pool of its own, and is replayed."""
    import torch
    weight, x = torch.randn(512, 512, device="cuda"), torch.zeros(64, 512, device="cuda")
    x @ weight
    torch.cuda.synchronize()
    before = torch.cuda.memory_reserved()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x @ weight).relu()
    pools = {tuple(s["segment_pool_id"]) for s in torch.cuda.memory._snapshot()["segments"]}
    checks.equal("pools", len(pools), 2)
    checks.true("its own segments", torch.cuda.memory_reserved() > before)
    graph.replay()
    torch.cuda.synchronize()
    checks.equal("result", y.shape, (64, 512))
    checks.counters_agree("with a graph")


@scenario()
def one_rank(checks):
    """Distributed data parallel with NCCL and a single rank."""
    import os

    import torch
    import torch.distributed as distributed
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    store = distributed.HashStore()
    distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    numbers = torch.tensor([1.0, 2.0, 3.0], device="cuda")
    distributed.all_reduce(numbers)
    checks.equal("a sum over one rank", numbers.tolist(), [1.0, 2.0, 3.0])
    gathered = [torch.empty_like(numbers)]
    distributed.all_gather(gathered, numbers)
    checks.equal("gathered", gathered[0].tolist(), [1.0, 2.0, 3.0])
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[0])
    model(torch.randn(4, 64, device="cuda")).sum().backward()
    checks.equal("gradient", model.module.weight.grad.shape, (64, 64))
    distributed.destroy_process_group()
    checks.counters_agree("end")


@scenario()
def profiler(checks):
    """torch.profiler goes on without a GPU's events."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as result:
        x = torch.randn(1 << 20, device="cuda") + 1
    names = {event.name for event in result.events()}
    checks.true("operators", "aten::add" in names, str(names))
    checks.equal("still there", x.nbytes, 4 * MIB)
    checks.counters_agree("end")


@scenario()
def graphs_share_a_pool(checks):
    """Two graphs in one private pool, and a module whose forward and backward are graphs."""
    import torch
    weight, x = torch.randn(512, 512, device="cuda"), torch.randn(64, 512, device="cuda")
    x @ weight
    pool, graphs, results = torch.cuda.graph_pool_handle(), [], []
    for _ in range(2):
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=pool):
            results.append((x @ weight).relu())
    pools = {tuple(s["segment_pool_id"]) for s in torch.cuda.memory._snapshot()["segments"]}
    checks.equal("pools", len(pools), 2)
    for graph in graphs:
        graph.replay()
    checks.equal("results live apart", results[0].data_ptr() != results[1].data_ptr(), True)
    checks.counters_agree("two graphs")
    module = torch.nn.Linear(32, 32).cuda()
    sample = torch.randn(4, 32, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(module, (sample,))
    graphed(torch.randn(4, 32, device="cuda", requires_grad=True)).sum().backward()
    checks.equal("gradient", module.weight.grad.shape, (32, 32))
    checks.counters_agree("graphed")


@scenario()
def refused_by_name(checks):
    """What is not simulated is refused, with its name on stderr."""
    import os
    import tempfile

    import torch
    for what, name, function in (
            ("recurrent network", "cudnn", lambda: torch.nn.LSTM(8, 16).cuda()(torch.randn(5, 2, 8, device="cuda"))),
            ("Fourier transform", "cufft", lambda: torch.fft.fft(torch.randn(64, device="cuda"))),
            ("linear equations", "cusolver", lambda: torch.linalg.solve(torch.randn(8, 8, device="cuda"),
                                                                        torch.randn(8, 2, device="cuda"))),
            ("sparse rows", "cusparse", lambda: torch.eye(4).to_sparse_csr().cuda() @ torch.randn(4, 2, device="cuda"))):
        with tempfile.TemporaryFile() as file:
            saved = os.dup(2)
            os.dup2(file.fileno(), 2)
            try:
                checks.raises(what, RuntimeError, "", function)
            finally:
                os.dup2(saved, 2)
            file.seek(0)
            said = file.read().decode()
        checks.true(f"the name of {what}", f"simgpu: not simulated: {name}" in said, said)


@scenario(slow=True)
def compiled(checks):
    """torch.compile generates, compiles and launches its kernels."""
    import torch
    function = torch.compile(lambda a, b: torch.relu(a @ b) * 2 + 1)
    a, b = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    checks.equal("shape", function(a, b).shape, (256, 256))
    checks.counters_agree("end")
