"""Parameter counts of `vramtrack estimate` against Hugging Face's own models, made on the meta device
from the same configuration: every family, grouped and single key/value heads, biases, tied or not.
Skipped without torch and transformers.
"""

import json
import os
import subprocess
import sys
import tempfile

from torch_python import use_torch_python

use_torch_python()
import torch  # noqa: E402
import transformers  # noqa: E402

vramtrack = sys.argv[1]

CONFIGS = {
    "gpt2": transformers.GPT2Config(),
    "gpt2 inner width": transformers.GPT2Config(n_embd=96, n_layer=2, n_head=3, n_inner=200),
    "gpt2 untied": transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, tie_word_embeddings=False),
    "llama default": transformers.LlamaConfig(),
    "llama gqa": transformers.LlamaConfig(hidden_size=256, num_hidden_layers=3, num_attention_heads=8,
                                          num_key_value_heads=2, intermediate_size=688, vocab_size=1000),
    "llama mqa tied biases": transformers.LlamaConfig(
        hidden_size=256, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=1,
        intermediate_size=688, vocab_size=1000, tie_word_embeddings=True, attention_bias=True,
        mlp_bias=True),
    "llama head_dim": transformers.LlamaConfig(hidden_size=256, num_hidden_layers=2,
                                               num_attention_heads=4, head_dim=96, vocab_size=1000),
    "mistral": transformers.MistralConfig(),
    "qwen2": transformers.Qwen2Config(),
    "qwen3": transformers.Qwen3Config(),
    "gemma": transformers.GemmaConfig(),
    "mixtral": transformers.MixtralConfig(num_hidden_layers=2),
}

failures = 0
for name, config in CONFIGS.items():
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    expected = sum(p.numel() for p in model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(config.to_dict(), file, default=str)
        answer = json.loads(subprocess.run([vramtrack, "estimate", path, "--json", "--seq", "16"],
                                           check=True, capture_output=True, text=True).stdout)
    good = answer["parameters"] == expected
    failures += not good
    print("ok  " if good else "FAIL", f"{name:24} {answer['parameters']} expected {expected}")
sys.exit(1 if failures else 0)
