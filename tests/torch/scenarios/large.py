"""Jobs of the size that people rent a card for."""
import resource
import time

from scenarios import scenario

GIB = 1 << 30


def _seven_billion(checks, tokens, checkpointing):
    import torch
    import transformers
    started = time.monotonic()
    config = transformers.LlamaConfig(
        vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, max_position_embeddings=8192, tie_word_embeddings=False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    numel = sum(p.numel() for p in model.parameters())
    attention, mlp = 4096 * 4096 * 2 + 2 * 4096 * 1024, 3 * 4096 * 11008
    checks.equal("parameters", numel, 2 * 32000 * 4096 + 32 * (attention + mlp + 2 * 4096) + 4096)
    if checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(0, 32000, (1, tokens)).cuda()
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    checks.counters_agree("after the step")
    checks.numbers["peak_allocated"] = torch.cuda.max_memory_allocated()
    checks.numbers["peak_reserved"] = torch.cuda.max_memory_reserved()
    # weights, gradients and two moments in bfloat16
    checks.true("at least eight bytes a parameter", torch.cuda.max_memory_allocated() > 8 * numel)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    checks.numbers["host_bytes"] = resident
    checks.numbers["wall_seconds"] = round(time.monotonic() - started, 1)
    checks.true("host memory below 6 GiB", resident < 6 * GIB, f"{resident / GIB:.1f} GiB")


@scenario(slow=True, needs=("transformers",), device="h200")
def llama_7b_2048(checks):
    """7B Llama, built on the device, 2,048 tokens."""
    _seven_billion(checks, 2048, False)


@scenario(slow=True, needs=("transformers",), device="h200")
def llama_7b_2048_checkpointed(checks):
    """The same with activation checkpointing."""
    _seven_billion(checks, 2048, True)


@scenario(slow=True, needs=("transformers",), device="h200")
def llama_7b_8192(checks):
    """7B Llama, 8,192 tokens."""
    _seven_billion(checks, 8192, False)


@scenario(slow=True, needs=("transformers",), device="h200")
def llama_7b_8192_checkpointed(checks):
    """The same with activation checkpointing."""
    _seven_billion(checks, 8192, True)


@scenario(slow=True, needs=("transformers",), device="24GiB")
def seven_billion_on_a_small_card(checks):
    """On 24 GiB the same model ends in PyTorch's own error."""
    import torch
    checks.raises("too large", torch.OutOfMemoryError, "total capacity of 24.00 GiB",
                  lambda: _seven_billion(checks, 2048, False))
