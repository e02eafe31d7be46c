"""Fills the KV cache of a small Llama with a prompt and stops, so that the cache can be looked at."""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM

try:
    import vramtrack  # there in every process that vramtrack traces
except ImportError:
    vramtrack = None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("layers", 4), ("hidden", 1024), ("heads", 16), ("kv-heads", 4),
                          ("vocab", 8000), ("tokens", 1024), ("batch", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()

    config = LlamaConfig(
        num_hidden_layers=args.layers, hidden_size=args.hidden, intermediate_size=2 * args.hidden,
        num_attention_heads=args.heads, num_key_value_heads=args.kv_heads, vocab_size=args.vocab,
        max_position_embeddings=args.tokens, attn_implementation="sdpa")
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    prompt = torch.randint(args.vocab, (args.batch, args.tokens), device="cuda")
    with torch.no_grad():
        output = model(prompt, use_cache=True, logits_to_keep=1)
    if vramtrack:
        vramtrack.mark("cache filled")
    head = args.hidden // args.heads
    formula = 2 * args.layers * args.kv_heads * head * 2 * args.tokens * args.batch
    print(f"the formula gives {formula} bytes for {output.past_key_values.get_seq_length()} tokens")


if __name__ == "__main__":
    main()
