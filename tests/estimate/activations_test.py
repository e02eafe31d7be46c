"""The activations of `vramtrack estimate` against what PyTorch really saves for the backward.

Small models of Hugging Face run a forward pass on the CPU; torch.autograd.graph.saved_tensors_hooks
sees every tensor that is kept, Python's collector those that closures and the output hold, and the
storages are summed, each once, weights left out. One thing differs on the CPU: dropout masks have the
type of the tensor, on a GPU they are bytes. Needs torch and transformers (and peft for
LoRA); without them the test is skipped.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile

from torch_python import use_torch_python

use_torch_python()
import torch  # noqa: E402
import transformers  # noqa: E402

try:
    import peft
except ImportError:
    peft = None

vramtrack = sys.argv[1]
torch.manual_seed(0)


def llama(**changes):
    shape = dict(hidden_size=64, intermediate_size=176, num_hidden_layers=3, num_attention_heads=4,
                 num_key_value_heads=4, vocab_size=320, max_position_embeddings=128)
    shape.update(changes)
    return transformers.LlamaConfig(**shape)


def gpt2(**changes):
    shape = dict(n_embd=64, n_layer=3, n_head=4, vocab_size=320, n_positions=128)
    shape.update(changes)
    return transformers.GPT2Config(**shape)


def live_storages(tensors, weights):
    seen = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        # uint8: the state of the random generator, which lies in host memory
        if storage.data_ptr() in weights or storage.nbytes() == 0 or tensor.dtype == torch.uint8:
            continue
        seen[storage.data_ptr()] = storage.nbytes()
    return seen


def all_tensors():
    gc.collect()
    return [o for o in gc.get_objects() if type(o) in (torch.Tensor, torch.nn.Parameter)]


def measure(config, attention, dtype, batch, seq, options):
    earlier = {t.untyped_storage().data_ptr() for t in all_tensors()}
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    model = model.to(dtype).train()
    if options.get("lora"):
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=options["lora"], target_modules=options["targets"], lora_dropout=0.0))
    if options.get("checkpoint"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    weights |= {p.untyped_storage().data_ptr() for p in model.buffers()}
    kept = []

    def pack(tensor):
        kept.append(tensor)
        return tensor

    ids = torch.randint(0, config.vocab_size, (batch, seq))
    cache = not options.get("no_cache")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = model(input_ids=ids, labels=ids, use_cache=cache)
    seen = live_storages(kept, weights)
    # What the output and the closures of recomputed layers hold lives as long.
    held = [t for t in all_tensors() if t.untyped_storage().data_ptr() not in earlier]
    seen.update(live_storages(held, weights))
    kept.clear()
    return sum(seen.values()) - mask_excess(config, attention, dtype, batch, seq, options)


def mask_excess(config, attention, dtype, batch, seq, options):
    """Bytes by which the CPU's dropout masks exceed the GPU's."""
    if config.model_type != "gpt2":
        return 0
    tokens = batch * seq * config.n_embd
    elements = tokens if config.embd_pdrop > 0 else 0
    if not options.get("checkpoint"):
        elements += 2 * tokens * config.n_layer if config.resid_pdrop > 0 else 0
        if config.attn_pdrop > 0 and attention == "eager":
            elements += batch * config.n_head * seq * seq * config.n_layer
    return elements * (torch.tensor([], dtype=dtype).element_size() - 1)


def estimate(config, attention, dtype, batch, seq, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(config.to_dict(), file, default=str)
        command = [vramtrack, "estimate", path, "--json", "--batch", str(batch), "--seq", str(seq),
                   "--dtype", {torch.float32: "float32", torch.bfloat16: "bfloat16"}[dtype],
                   "--attention", {"eager": "eager", "sdpa": "fused"}[attention]]
        if options.get("no_cache"):
            command.append("--no-cache")
        if options.get("checkpoint"):
            command += ["--recompute", "full"]
        if options.get("lora"):
            command += ["--lora-rank", str(options["lora"]), "--lora-targets", options["roles"]]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    total = 0
    for term in answer["terms"]:
        if term["category"] not in ("activations", "activations/kv", "attention", "activations/logits"):
            continue
        if term["symbol"] == "8TV":  # exists only once the backward runs
            continue
        total += term["bytes"]
    return total


CASES = [
    ("llama mha eager fp32", llama(), "eager", torch.float32, {}),
    ("llama mha eager bf16", llama(), "eager", torch.bfloat16, {}),
    ("llama gqa eager fp32", llama(num_key_value_heads=2), "eager", torch.float32, {}),
    ("llama mqa eager bf16", llama(num_key_value_heads=1), "eager", torch.bfloat16, {}),
    ("llama gqa eager no cache", llama(num_key_value_heads=2), "eager", torch.float32, {"no_cache": True}),
    ("llama mha sdpa fp32", llama(), "sdpa", torch.float32, {}),
    ("llama mha sdpa bf16", llama(), "sdpa", torch.bfloat16, {}),
    ("llama mha sdpa no cache", llama(), "sdpa", torch.float32, {"no_cache": True}),
    ("gpt2 eager fp32", gpt2(), "eager", torch.float32, {}),
    ("gpt2 eager bf16", gpt2(), "eager", torch.bfloat16, {}),
    ("gpt2 eager no cache", gpt2(), "eager", torch.float32, {"no_cache": True}),
    ("gpt2 eager no dropout", gpt2(attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0), "eager",
     torch.float32, {}),
    ("gpt2 sdpa fp32", gpt2(attn_pdrop=0.0), "sdpa", torch.float32, {}),
    ("gpt2 sdpa bf16 no cache", gpt2(attn_pdrop=0.0), "sdpa", torch.bfloat16, {"no_cache": True}),
    ("gpt2 fused gelu", gpt2(activation_function="gelu"), "eager", torch.float32, {}),
    ("llama checkpointed fp32", llama(), "eager", torch.float32, {"checkpoint": True}),
    ("gpt2 checkpointed bf16", gpt2(), "eager", torch.bfloat16, {"checkpoint": True}),
]
if peft is not None:
    CASES += [
        ("llama lora fp32", llama(), "eager", torch.float32,
         {"lora": 8, "targets": ["q_proj", "v_proj"], "roles": "q,v"}),
        ("llama lora bf16", llama(), "sdpa", torch.bfloat16,
         {"lora": 8, "targets": ["q_proj", "v_proj"], "roles": "q,v"}),
        ("llama lora all fp32", llama(num_hidden_layers=12), "sdpa", torch.float32,
         {"lora": 8, "targets": "all-linear", "roles": "all"}),
    ]

failures = 0
for name, config, attention, dtype, options in CASES:
    for batch, seq in ((2, 96), (1, 64)):
        measured = measure(config, attention, dtype, batch, seq, options)
        estimated = estimate(config, attention, dtype, batch, seq, options)
        error = (estimated - measured) / measured
        good = abs(error) <= 0.01
        failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {name:26} b={batch} s={seq:4} "
              f"estimated {estimated:10} measured {measured:10} {100 * error:+.2f} %")
sys.exit(1 if failures else 0)
