"""transformers and peft on random configurations: nothing is downloaded."""
import os

from scenarios import scenario
from witness import rounded, tensor_bytes


def _llama(**changes):
    import torch
    import transformers
    settings = dict(vocab_size=1000, hidden_size=256, intermediate_size=688, num_hidden_layers=2,
                    num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=2048,
                    bos_token_id=1, eos_token_id=2, pad_token_id=3, tie_word_embeddings=False)
    settings.update(changes)
    config = transformers.LlamaConfig(**settings)
    with torch.device("cuda"):
        return transformers.LlamaForCausalLM(config)


@scenario(needs=("transformers",))
def llama_training(checks):
    """Llama style: grouped queries, rotary positions, SwiGLU, RMSNorm."""
    import torch
    model = _llama().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(3):
        ids = torch.randint(0, 1000, (2, 256)).cuda()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
    state = [t for s in optimizer.state.values() for t in s.values() if t.is_cuda]
    checks.equal("two moments", sum(t.nbytes for t in state), 2 * sum(p.nbytes for p in model.parameters()))
    checks.counters_agree("end")


def _generate(checks, **settings):
    import torch
    model = _llama().bfloat16().eval()
    ids = torch.randint(4, 1000, (2, 16)).cuda()
    output = model.generate(ids, attention_mask=torch.ones_like(ids), **settings)
    checks.equal("length", tuple(output.shape), (2, 16 + 24))
    checks.counters_agree("end")


@scenario(needs=("transformers",))
def generate_greedy(checks):
    """Greedy decoding stops at the asked length."""
    _generate(checks, max_new_tokens=24, do_sample=False)


@scenario(needs=("transformers",))
def generate_beams(checks):
    """Beam search with four beams stops at the asked length; the cache is that of four times the batch."""
    _generate(checks, max_new_tokens=24, do_sample=False, num_beams=4)


@scenario(needs=("transformers",))
def generate_sampling(checks):
    """Sampling with temperature, top-k and top-p stops at the asked length."""
    _generate(checks, max_new_tokens=24, do_sample=True, top_k=20, top_p=0.9, temperature=0.7)


@scenario(needs=("transformers",))
def generate_static_cache(checks):
    """A static cache has its formula: 2 x layers x heads x head size x bytes x length x batch."""
    _generate(checks, max_new_tokens=24, do_sample=False, cache_implementation="static", disable_compile=True)


@scenario(needs=("transformers",))
def generate_sliding_window(checks):
    """A window of 32 tokens bounds what the cache keeps."""
    import torch
    import transformers
    config = transformers.MistralConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=688, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=2, max_position_embeddings=2048, sliding_window=32, eos_token_id=2, pad_token_id=3)
    with torch.device("cuda"):
        model = transformers.MistralForCausalLM(config).bfloat16().eval()
    ids = torch.randint(4, 1000, (1, 16)).cuda()
    output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=80, do_sample=False,
                            return_dict_in_generate=True)
    checks.equal("length", tuple(output.sequences.shape), (1, 96))
    cache = output.get("past_key_values") or output.get("cache")
    kept = {layer.keys.shape[-2] for layer in cache.layers}
    checks.equal("tokens kept", kept, {31})
    checks.counters_agree("end")


@scenario(needs=("transformers",))
def kv_cache_formula(checks):
    """The dynamic cache grows by the formula."""
    import torch
    model = _llama().bfloat16().eval()
    for tokens in (256, 1024):
        ids = torch.randint(4, 1000, (2, tokens)).cuda()
        with torch.no_grad():
            cache = model(ids, use_cache=True, logits_to_keep=1).past_key_values
        held = [t for layer in cache.layers for t in (layer.keys, layer.values)]  # of two layers
        checks.equal(f"cache at {tokens}", sum(t.nbytes for t in held), 2 * 2 * 2 * 32 * 2 * tokens * 2)
        checks.equal(f"held at {tokens}", tensor_bytes(held), 4 * rounded(2 * 2 * 32 * 2 * tokens))
        del cache, held


@scenario(needs=("transformers", "peft"))
def lora(checks):
    """peft: gradients and optimizer state for the adapters alone."""
    import peft
    import torch
    model = peft.get_peft_model(_llama(), peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    model.cuda()
    adapters = [p for p in model.parameters() if p.requires_grad]
    # q: 256 -> 256, v: 256 -> 64, in two layers
    checks.equal("adapters", sum(p.numel() for p in adapters), 2 * 8 * ((256 + 256) + (256 + 64)))
    optimizer = torch.optim.AdamW(adapters)
    ids = torch.randint(0, 1000, (2, 64)).cuda()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    checks.equal("gradients", sum(p.grad.nbytes for p in adapters), sum(p.nbytes for p in adapters))
    checks.equal("others have none", any(p.grad is not None for p in model.parameters() if not p.requires_grad), False)
    checks.counters_agree("end")


@scenario(slow=True, needs=("transformers", "accelerate"))
def trainer(checks):
    """transformers.Trainer for three steps on a random configuration."""
    import tempfile

    import torch
    import transformers
    data = [{"input_ids": torch.randint(0, 1000, (64,)), "labels": torch.randint(0, 1000, (64,))} for _ in range(24)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=os.path.join(folder, "out"), max_steps=3, per_device_train_batch_size=2, report_to=[],
            save_strategy="no", bf16=True, logging_steps=1, gradient_accumulation_steps=2)
        result = transformers.Trainer(model=_llama().cpu(), args=arguments, train_dataset=data).train()
    checks.equal("steps", result.global_step, 3)
    checks.counters_agree("end")
