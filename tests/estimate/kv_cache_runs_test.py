"""The KV cache of `vramtrack estimate` against what Hugging Face's caches hold on the simulated GPU, byte by byte: all
tokens, a sliding window, and keys and values quantised to 8 bits.

  kv_cache_runs_test.py --simgpu DIR --vramtrack FILE

One child imports PyTorch and runs every case; each case prefills a prompt and decodes a few tokens.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from torch_python import use_torch_python

use_torch_python()

import torch  # noqa: E402
import transformers  # noqa: E402

DECODED = 3
BATCH = 2
SHAPE = dict(hidden_size=512, intermediate_size=1024, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2,
             vocab_size=1000, max_position_embeddings=4096)
LLAMA = transformers.LlamaConfig(**SHAPE)
MISTRAL = transformers.MistralConfig(**SHAPE, sliding_window=256)
# name: (config, tokens in all, cache, options of the estimate)
CASES = {
    "all tokens": (LLAMA, 1024, "dynamic", []),
    "all tokens, static": (LLAMA, 1024, "static", []),
    "a window": (MISTRAL, 1024, "dynamic", []),
    "a window, static": (MISTRAL, 1024, "static", []),
    "shorter than the window": (MISTRAL, 128, "dynamic", []),
    "shorter than the window, static": (MISTRAL, 128, "static", []),
    "8 bits": (LLAMA, 1024, "fp8", ["--kv-bits", "8"]),
}


def new_cache(kind, config, tokens):
    from transformers import cache_utils
    if kind == "static":
        return cache_utils.StaticCache(config, max_cache_len=tokens)
    if kind == "fp8":
        if not hasattr(cache_utils, "Fp8QuantizedLayer"):
            return None  # an older transformers quantises through other packages only
        return cache_utils.QuantizedCache("fp8", config)
    return cache_utils.DynamicCache(config=config)


def tensors_in(value, depth=3):
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part, depth - 1)


def held(cache):
    """Bytes of the distinct storages of keys and values, and of scales and counters beside them."""
    states, small = {}, {}
    for layer in cache.layers:
        for tensor in tensors_in(list(vars(layer).values())):
            storage = tensor.untyped_storage()
            if tensor.is_cuda and storage.nbytes():
                (states if tensor.dim() == 4 else small)[storage.data_ptr()] = storage.nbytes()
    return sum(states.values()), sum(small.values())


def inside():
    for name, (config, tokens, kind, _) in CASES.items():
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(torch.bfloat16).cuda().eval()
        cache = new_cache(kind, config, tokens)
        if cache is None:
            print("COUNTED " + json.dumps({"case": name, "skipped": f"transformers {transformers.__version__}"}))
            continue
        prompt = torch.zeros(BATCH, tokens - DECODED, dtype=torch.long, device="cuda")
        with torch.inference_mode():
            model(prompt, past_key_values=cache, use_cache=True, logits_to_keep=1)
            for _ in range(DECODED):
                model(prompt[:, :1], past_key_values=cache, use_cache=True, logits_to_keep=1)
        states, small = held(cache)
        print("COUNTED " + json.dumps({"case": name, "states": states, "small": small}))


def main():
    if sys.argv[1:] == ["--inside"]:
        return inside()
    parser = argparse.ArgumentParser()
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--vramtrack", required=True)
    arguments = parser.parse_args()
    from training_runs_test import preloads
    done = subprocess.run([sys.executable, __file__, "--inside"], capture_output=True, text=True, timeout=900,
                          env=dict(os.environ, LD_PRELOAD=preloads(arguments.simgpu), SIMGPU="a100-80g"))
    counted = {c["case"]: c for c in (json.loads(line.removeprefix("COUNTED ")) for line in done.stdout.splitlines()
                                      if line.startswith("COUNTED "))}
    if done.returncode or set(counted) != set(CASES):
        sys.exit(f"the cases did not run: {done.stderr[-1500:]}")
    failures = 0
    for name, (config, tokens, _, options) in CASES.items():
        if "skipped" in counted[name]:
            print(f"skip {name} ({counted[name]['skipped']})")
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "config.json")
            path.write_text(json.dumps(config.to_dict(), default=str))
            told = json.loads(subprocess.run(
                [arguments.vramtrack, "estimate", path, "--inference", "--json", "--dtype", "bfloat16", "--batch", str(BATCH),
                 "--seq", str(tokens), *options], check=True, capture_output=True, text=True).stdout)
        expected = told["categories"]["kv_cache"]
        # Beside it two scales of a layer and its counters, a few words each.
        good = counted[name]["states"] == expected and counted[name]["small"] <= 64 * config.num_hidden_layers
        failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {name:32} {counted[name]['states']} bytes, estimated {expected}"
              f" (beside it {counted[name]['small']})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
