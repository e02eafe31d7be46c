"""Jobs of two processes on a machine with two simulated cards: NCCL, DDP, FSDP."""
from scenarios import scenario
from witness import rounded

MIB = 1 << 20
MACHINE = "2x a100-40g"


def _join(rank, store, ranks=2):
    import torch
    import torch.distributed as distributed
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", store=distributed.FileStore(store, ranks), rank=rank, world_size=ranks)
    return distributed


@scenario(device=MACHINE, ranks=2)
def two_ranks(checks, rank, store):
    """Collectives and messages on small data give what their definitions say; large ones give their sizes."""
    import torch
    distributed = _join(rank, store)
    mine = torch.tensor([1.0, 2.0, 3.0], device="cuda") * (rank + 1)
    for name, op, expected in (("sum", distributed.ReduceOp.SUM, [3.0, 6.0, 9.0]),
                               ("maximum", distributed.ReduceOp.MAX, [2.0, 4.0, 6.0]),
                               ("product", distributed.ReduceOp.PRODUCT, [2.0, 8.0, 18.0]),
                               ("average", distributed.ReduceOp.AVG, [1.5, 3.0, 4.5])):
        result = mine.clone()
        distributed.all_reduce(result, op)
        checks.equal(name, result.tolist(), expected)
    for dtype in (torch.int32, torch.int64, torch.bfloat16, torch.float16, torch.float64, torch.uint8):
        result = torch.tensor([1 + rank, 7], device="cuda", dtype=dtype)
        distributed.all_reduce(result)
        checks.equal(f"sum of {dtype}", result.tolist(), [3, 14])
    result = mine.clone()
    distributed.broadcast(result, src=1)
    checks.equal("broadcast", result.tolist(), [2.0, 4.0, 6.0])
    gathered = torch.empty(6, device="cuda")
    distributed.all_gather_into_tensor(gathered, mine)
    checks.equal("gathered", gathered.tolist(), [1.0, 2.0, 3.0, 2.0, 4.0, 6.0])
    part = torch.empty(2, device="cuda")
    distributed.reduce_scatter_tensor(part, torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda") * (rank + 1))
    checks.equal("reduced and scattered", part.tolist(), [[3.0, 6.0], [9.0, 12.0]][rank])
    counts = torch.empty(2, dtype=torch.int64, device="cuda")
    distributed.all_to_all_single(counts, torch.tensor([10 * rank, 10 * rank + 1], device="cuda"))
    checks.equal("all to all", counts.tolist(), [[0, 10], [1, 11]][rank])
    message = torch.tensor([40 + rank], device="cuda")
    if rank == 0:
        distributed.send(message, 1)
        distributed.recv(message, 1)
    else:
        received = torch.zeros_like(message)
        distributed.recv(received, 0)
        checks.equal("received", received.item(), 40)
        distributed.send(message, 0)
    checks.equal("message", message.item(), 41)
    objects = [None, None]
    distributed.all_gather_object(objects, {"rank": rank, "text": "x" * 3000})
    checks.equal("objects", [o["rank"] for o in objects], [0, 1])
    checks.equal("their text", {len(o["text"]) for o in objects}, {3000})
    large = torch.empty(64 * MIB, device="cuda", dtype=torch.uint8)
    distributed.all_reduce(large)
    distributed.barrier()
    alone = distributed.new_group([0])
    if rank == 0:
        result = mine.clone()
        distributed.all_reduce(result, group=alone)
        checks.equal("in a group of one", result.tolist(), [1.0, 2.0, 3.0])
    checks.counters_agree("end", rank)
    distributed.destroy_process_group()


@scenario(device=MACHINE, ranks=2)
def split_communicator(checks, rank, store):
    """A group that is split off an eager communicator."""
    import torch
    import torch.distributed as distributed
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", store=distributed.FileStore(store, 2), rank=rank, world_size=2,
                                   device_id=torch.device("cuda", rank))
    both = distributed.new_group([0, 1])
    result = torch.tensor([5 + rank], device="cuda")
    distributed.all_reduce(result, group=both)
    checks.equal("sum", result.item(), 11)
    checks.counters_agree("end", rank)
    distributed.destroy_process_group()


@scenario(device=MACHINE, ranks=2)
def ddp_two_ranks(checks, rank, store):
    """Distributed data parallel: each rank keeps the whole model and buckets of its gradients."""
    import torch
    distributed = _join(rank, store)
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(8))).cuda()
    parameters = 8 * rounded(1024 * 1024 * 4)
    checks.equal("the model", torch.cuda.memory_allocated(), parameters)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(16, 1024, device="cuda")).sum().backward()
        optimizer.step()
    torch._C._cuda_clearCublasWorkspaces()
    optimizer.zero_grad(set_to_none=True)
    # The buckets stay: as large as the gradients. So does what little DDP notes of its parameters.
    rest = torch.cuda.memory_allocated() - 2 * parameters
    checks.true("parameters and buckets", 0 <= rest < 64 * 1024, str(rest))
    checks.counters_agree("end", rank)
    distributed.destroy_process_group()


@scenario(device=MACHINE, ranks=2)
def fsdp_two_ranks(checks, rank, store):
    """Fully sharded: between steps each rank holds half of parameters, gradients and moments."""
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel
    distributed = _join(rank, store)
    layers = [torch.nn.Linear(1024, 1024, bias=False) for _ in range(4)]
    half = 4 * rounded(1024 * 1024 * 4 // 2)
    model = torch.nn.Sequential(*(FullyShardedDataParallel(layer.cuda(), device_id=rank) for layer in layers))
    checks.equal("half of the parameters", torch.cuda.memory_allocated(), half)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(16, 1024, device="cuda")).sum().backward()
        optimizer.step()
    torch._C._cuda_clearCublasWorkspaces()
    checks.equal("parameters, gradients, two moments", torch.cuda.memory_allocated(), 4 * half)
    optimizer.zero_grad(set_to_none=True)
    checks.equal("without gradients", torch.cuda.memory_allocated(), 3 * half)
    checks.counters_agree("end", rank)
    distributed.destroy_process_group()


@scenario(device=MACHINE, ranks=2)
def fully_shard_two_ranks(checks, rank, store):
    """The newer interface, which shards each parameter."""
    import torch
    from torch.distributed.fsdp import fully_shard
    distributed = _join(rank, store)
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(4))).cuda()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    half = 4 * rounded(1024 * 1024 * 4 // 2)
    checks.equal("half of the parameters", torch.cuda.memory_allocated(), half)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(16, 1024, device="cuda")).sum().backward()
        optimizer.step()
    torch._C._cuda_clearCublasWorkspaces()
    checks.equal("parameters, gradients, two moments", torch.cuda.memory_allocated(), 4 * half)
    checks.counters_agree("end", rank)
    distributed.destroy_process_group()


@scenario(device=MACHINE, ranks=2)
def a_rank_leaves(checks, rank, store):
    """Rank 1 ends early, as a program does that was stopped: rank 0 goes on with values that nobody knows."""
    import torch
    distributed = _join(rank, store)
    result = torch.tensor([1.0 + rank], device="cuda")
    distributed.all_reduce(result)
    checks.equal("together", result.item(), 3.0)
    if rank == 0:
        for _ in range(3):
            distributed.all_reduce(result)
        checks.equal("alone", result.item(), 0.0)
        checks.counters_agree("end", rank)


@scenario(device=MACHINE)
def data_parallel(checks):
    """One process, two cards: replicas, and gradients summed onto the first."""
    import torch
    model = torch.nn.DataParallel(torch.nn.Linear(1024, 1024, bias=False).cuda())
    out = model(torch.randn(32, 1024, device="cuda"))
    checks.equal("shape", out.shape, (32, 1024))
    checks.true("a replica was there", torch.cuda.max_memory_allocated(1) >= rounded(1024 * 1024 * 4))
    out.sum().backward()
    checks.equal("gradient", model.module.weight.grad.shape, (1024, 1024))
    checks.counters_agree("first", 0)
    checks.counters_agree("second", 1)
