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
def recurrent(checks):
    """Recurrent networks through cuDNN: PyTorch's weights fill the weight space, and backward finds its reserve."""
    import torch
    steps, batch, inputs, hidden, layers = 8, 32, 64, 128, 2
    for kind, gates, settings in (("RNN", 1, {}), ("GRU", 3, {}), ("LSTM", 4, {}), ("GRU", 3, {"bidirectional": True}),
                                  ("LSTM", 4, {"proj_size": 32}), ("LSTM", 4, {"dropout": 0.5, "bidirectional": True})):
        name = f"{kind} {settings}"
        model = getattr(torch.nn, kind)(inputs, hidden, layers, **settings).cuda()
        weights = list(model.parameters())
        checks.equal(f"{name}: weights", weights[0].untyped_storage().nbytes(), 4 * sum(p.numel() for p in weights))
        x = torch.randn(steps, batch, inputs, device="cuda", requires_grad=True)
        model(x)  # makes the random states of dropout, once
        y = state = states = None
        before = torch.cuda.memory_allocated()
        y, state = model(x)
        directions, output = 1 + model.bidirectional, model.proj_size or hidden
        states = state if kind == "LSTM" else (state,)
        kept = directions * layers * (gates * hidden + (hidden if kind == "LSTM" else 0) + output)
        masks = directions * (layers - 1) * output if model.dropout else 0
        reserve = 4 * steps * batch * (kept + masks)
        checks.equal(f"{name}: kept for backward", torch.cuda.memory_allocated() - before,
                     # with the initial states, zeros of the same sizes
                     rounded(y.nbytes) + 2 * sum(rounded(s.nbytes) for s in states) + rounded(reserve))
        y.sum().backward()
        checks.equal(f"{name}: gradients", all(p.grad is not None and p.grad.shape == p.shape for p in weights), True)
        with torch.no_grad():
            checks.equal(f"{name}: half", model.half().eval()(x.half())[0].dtype, torch.float16)
    lengths = torch.tensor([8, 5, 2])
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(8, 3, inputs, device="cuda"), lengths)
    y, _ = torch.nn.GRU(inputs, hidden).cuda()(packed)
    checks.equal("packed", y.data.shape, (15, hidden))
    del model, weights, x, y, state, states, packed
    checks.counters_agree("end")


@scenario()
def fourier(checks):
    """Fourier transforms of every kind; a plan's work area is PyTorch's, and goes back."""
    import torch
    x = torch.randn(4, 64, 64, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y = torch.fft.fftn(x.to(torch.complex64))
    checks.equal("result", y.shape, x.shape)
    # input as complex numbers, output, work area
    checks.equal("peak", torch.cuda.max_memory_allocated() - before, 3 * rounded(y.nbytes))
    checks.equal("real to complex", torch.fft.rfft(x).shape, (4, 64, 33))
    checks.equal("back", torch.fft.irfft(torch.fft.rfft(x)).shape, x.shape)
    checks.equal("double", torch.fft.fft2(x.double()).dtype, torch.complex128)
    z = x.clone().requires_grad_()
    window = torch.hann_window(32, device="cuda")
    torch.stft(z.reshape(4, -1), 32, window=window, return_complex=True).abs().sum().backward()
    checks.equal("gradient", z.grad.shape, z.shape)
    del y, z, window
    checks.counters_agree("end")


@scenario()
def sampling_and_ctc(checks):
    """Spatial transformers and the CTC loss through cuDNN."""
    import torch
    from torch.nn import functional as F
    theta = torch.randn(2, 2, 3, device="cuda", requires_grad=True)
    image = torch.randn(2, 3, 16, 16, device="cuda", requires_grad=True)
    grid = F.affine_grid(theta, (2, 3, 8, 8), align_corners=True)
    F.grid_sample(image, grid, align_corners=True).sum().backward()
    checks.equal("gradients", (image.grad.shape, theta.grad.shape), (image.shape, theta.shape))
    scores = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
    targets = torch.randint(1, 20, (4 * 30,), dtype=torch.int)
    F.ctc_loss(scores.log_softmax(2), targets, (50,) * 4, (30,) * 4).backward()
    checks.equal("scores", scores.grad.shape, scores.shape)
    del theta, image, grid, scores
    checks.counters_agree("end")


@scenario()
def dense_linear_algebra(checks):
    """Factorisations, solvers and eigenvalues, single and in batches, of every element type: all succeed."""
    import torch
    linalg = torch.linalg
    functions = {
        "cholesky": linalg.cholesky, "cholesky solve": lambda a: torch.cholesky_solve(a, a),
        "cholesky inverse": torch.cholesky_inverse, "qr": linalg.qr, "lu": linalg.lu, "det": linalg.det,
        "solve": lambda a: linalg.solve(a, a), "inverse": linalg.inv, "least squares": lambda a: linalg.lstsq(a, a),
        "svd": linalg.svd, "svd by QR": lambda a: linalg.svd(a, driver="gesvd"),
        "svd, approximate": lambda a: linalg.svd(a, driver="gesvda"), "pseudo-inverse": linalg.pinv,
        "eigh": linalg.eigh, "eigvalsh": linalg.eigvalsh, "eig": linalg.eig,
        "ldl": lambda a: linalg.ldl_solve(*linalg.ldl_factor(a), a), "rank": linalg.matrix_rank,
        "q times": lambda a: torch.ormqr(a, a[..., 0], a), "householder": lambda a: linalg.householder_product(a, a[..., 0]),
    }
    for kind in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        for shape in ((32, 32), (4, 16, 16)):
            a = torch.randn(shape, device="cuda", dtype=kind)
            for name, function in functions.items():
                try:
                    function(a)
                except RuntimeError as error:
                    checks.true(f"{name} of {kind}, {shape}", False, str(error)[:200])
    a = torch.randn(600, 300, device="cuda")
    checks.equal("shapes", [tuple(part.shape) for part in linalg.svd(a, full_matrices=False)], [(600, 300), (300,), (300, 300)])
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    linalg.svd(x).S.sum().backward()
    checks.equal("gradient", x.grad.shape, x.shape)
    layer = torch.nn.Linear(64, 64, device="cuda")
    torch.nn.init.orthogonal_(layer.weight)
    del a, x, layer
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
            ("sparse rows", "cusparse", lambda: torch.eye(4).to_sparse_csr().cuda() @ torch.randn(4, 2, device="cuda")),):
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
