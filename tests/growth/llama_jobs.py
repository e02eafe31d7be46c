"""Llama-style jobs whose memory is to be followed over sequence length, accumulation and decoded tokens.

Two layers of hidden size 256 with 8 heads, 4 of them for keys and values, from transformers; nothing is
computed on the simulated GPU, so that length costs no time.
"""

import contextlib
import functools
import sys

from traced_jobs import run_inside

LENGTHS = (512, 1024, 2048, 4096)
LAYERS, HEADS, KV_HEADS, HEAD_DIM, VOCAB = 2, 8, 4, 32, 1000
SMALL = {"num_hidden_layers": LAYERS, "hidden_size": HEADS * HEAD_DIM, "intermediate_size": 704,
         "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB}


def config(attention, longest, size=None):
    import transformers
    return transformers.LlamaConfig(**(size or SMALL), max_position_embeddings=longest, attn_implementation=attention)


@contextlib.contextmanager
def on_the_device(dtype):
    """Modules are made there and in that type, so that no conversion has them twice."""
    import torch
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device("cuda"):
            yield
    finally:
        torch.set_default_dtype(before)


def train(seq=512, attention="eager", batch=1, accumulate=1, checkpoint=False, dtype="float32", steps=2,
          size=None, lora=0):
    import torch
    import transformers
    from transformers import masking_utils
    # A check for packed sequences that reads values back, which the simulated GPU does not have. There are none.
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    with on_the_device(dtype):
        model = transformers.LlamaForCausalLM(config(attention, seq, size)).train()
        if lora:
            import peft
            model = peft.get_peft_model(model, peft.LoraConfig(r=lora, target_modules=["q_proj", "v_proj"]))
    if checkpoint:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    ids = torch.zeros(batch, seq, dtype=torch.long, device="cuda")
    for _ in range(steps):
        for _ in range(accumulate):
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    parameters = sum(p.numel() * p.element_size() for p in model.parameters())
    state = sum(t.numel() * t.element_size() for s in optimizer.state.values() for t in s.values()
                if isinstance(t, torch.Tensor) and t.is_cuda)
    return {"parameters": parameters, "trained": sum(p.numel() for p in trained), "optimizer_state": state,
            "peak": torch.cuda.max_memory_allocated()}


def cache_bytes(cache):
    return sum(t.numel() * t.element_size() for layer in cache.layers for t in (layer.keys, layer.values))


def prefill(tokens, batch=2, size=None, attention="sdpa", chunk=0):
    """Fills the cache with a prompt, at once or in chunks; the cache's own tensors are the witness."""
    import torch
    import transformers
    with on_the_device("bfloat16"):
        model = transformers.LlamaForCausalLM(config(attention, tokens, size)).eval()
    prompt = torch.zeros(batch, tokens, dtype=torch.long, device="cuda")
    output, chunk = None, chunk or tokens
    with torch.no_grad():
        for at in range(0, tokens, chunk):
            cache = output.past_key_values if output else None
            output = model(prompt[:, at:at + chunk], use_cache=True, past_key_values=cache, logits_to_keep=1)
    return {"kv": cache_bytes(output.past_key_values)}


def generate(prompt, new, batch=2):
    """Decodes token by token. The last token is chosen and never fed back: it has no keys and values."""
    import torch
    import transformers
    with on_the_device("bfloat16"):
        model = transformers.LlamaForCausalLM(config("sdpa", prompt + new)).eval()
    ids = torch.zeros(batch, prompt, dtype=torch.long, device="cuda")
    tokens = model.generate(ids, max_new_tokens=new, min_new_tokens=new, do_sample=False, use_cache=True)
    per_token = 2 * LAYERS * KV_HEADS * HEAD_DIM * 2 * batch
    return {"per_token": per_token, "cached_tokens": tokens.shape[1] - 1, "prompt": prompt}


JOBS = {}
for length in LENGTHS:
    for kind in ("eager", "sdpa"):
        JOBS[f"{kind} {length}"] = functools.partial(train, seq=length, attention=kind)
    JOBS[f"checkpointed {length}"] = functools.partial(train, seq=length, attention="sdpa", checkpoint=True)
    JOBS[f"prefill {length}"] = functools.partial(prefill, length)
for number in (1, 2, 4, 8):
    JOBS[f"accumulate {number}"] = functools.partial(train, accumulate=number)
for name, heads in (("mha", HEADS), ("mqa", 1)):
    JOBS[f"prefill {name}"] = functools.partial(prefill, 1024, size=dict(SMALL, num_key_value_heads=heads))
JOBS["generate"] = functools.partial(generate, 100, 40)

if __name__ == "__main__" and sys.argv[1] == "--inside":
    run_inside(JOBS, sys.argv[2], sys.argv[3:])
