"""Three training steps of a small Hugging Face model; prints what PyTorch counted, as JSON.

  training_runs.py CASE CONFIG_FILE     writes the model's config and prints the counters
"""

import json
import sys

import torch
import transformers


def llama(**changes):
    shape = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=6, num_attention_heads=16,
                 num_key_value_heads=16, vocab_size=16000)
    shape.update(changes)
    return transformers.LlamaConfig(**shape)


def gpt2(**changes):
    shape = dict(n_layer=6)
    shape.update(changes)
    return transformers.GPT2Config(**shape)


# name: (config, attention, dtype, batch, seq, options of the run, options of the estimate)
CASES = {
    "llama mha flash bf16": (llama(), "sdpa", "bfloat16", 4, 1024, {}, []),
    "llama mha eager bf16": (llama(), "eager", "bfloat16", 2, 1024, {}, []),
    "llama gqa eager fp32": (llama(num_key_value_heads=4), "eager", "float32", 2, 512, {}, []),
    "llama mqa flash bf16": (llama(num_key_value_heads=1), "sdpa", "bfloat16", 4, 1024, {}, []),
    "llama checkpointed": (llama(), "sdpa", "bfloat16", 8, 1024, {"checkpoint": True},
                           ["--recompute", "full"]),
    "llama autocast": (llama(), "sdpa", "float32", 2, 1024, {"autocast": True}, ["--autocast"]),
    "llama lora": (llama(), "sdpa", "bfloat16", 4, 1024, {"lora": 8}, ["--lora-rank", "8"]),
    "llama drops its output": (llama(), "sdpa", "float32", 2, 2048, {"drop": True}, ["--drop-output"]),
    "llama short, states rule": (llama(), "sdpa", "float32", 1, 64, {}, []),
    "llama accumulation": (llama(), "sdpa", "bfloat16", 4, 1024, {"accumulation": 2},
                           ["--accumulation", "2"]),
    "gpt2 eager fp32": (gpt2(), "eager", "float32", 4, 512, {}, []),
    "gpt2 flash bf16": (gpt2(), "sdpa", "bfloat16", 8, 512, {}, []),
    "gpt2 autocast": (gpt2(), "sdpa", "float32", 4, 1024, {"autocast": True}, ["--autocast"]),
    "gpt2 checkpointed eager": (gpt2(), "eager", "float32", 4, 512, {"checkpoint": True},
                                ["--recompute", "full"]),
    "gpt2 sgd": (gpt2(), "eager", "float32", 2, 256, {"sgd": True}, ["--optimizer", "sgd"]),
}


def prepare(config, attention, dtype, options):
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    model = model.to(getattr(torch, dtype))
    if options.get("lora"):
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=options["lora"], target_modules=["q_proj", "v_proj"], lora_dropout=0.0))
    if options.get("checkpoint"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.cuda().train()


def main():
    config, attention, dtype, batch, seq, options, _ = CASES[sys.argv[1]]
    with open(sys.argv[2], "w") as file:
        json.dump(config.to_dict(), file, default=str)
    model = prepare(config, attention, dtype, options)
    trained = [p for p in model.parameters() if p.requires_grad]
    make = torch.optim.SGD if options.get("sgd") else torch.optim.AdamW
    optimizer = make(trained, lr=1e-4)
    ids = torch.zeros(batch, seq, dtype=torch.long, device="cuda")
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(options.get("accumulation", 1)):
            with torch.autocast("cuda", torch.bfloat16, enabled=bool(options.get("autocast"))):
                out = model(input_ids=ids, labels=ids)
            if options.get("drop"):
                out = out.loss
            (out if options.get("drop") else out.loss).backward()
        optimizer.step()
        optimizer.zero_grad()
    state = [t for s in optimizer.state.values() for t in s.values()
             if isinstance(t, torch.Tensor) and t.is_cuda]
    print("COUNTED " + json.dumps({
        "peak": torch.cuda.max_memory_allocated(),
        "parameters": sum(p.numel() * p.element_size() for p in model.parameters()),
        "gradients": sum(p.numel() * p.element_size() for p in trained),
        "optimizer_state": sum(t.numel() * t.element_size() for t in state),
    }))


if __name__ == "__main__":
    main()
