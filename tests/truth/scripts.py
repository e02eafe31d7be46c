"""The labelled jobs. Each trains or generates on a model that it did not tune to any rule, tells the witness what it
alone can know, and marks a few moments.

`aside=True`: kept aside while rules are written; only the final numbers are looked at (README.md).
"""
import importlib.util
import pathlib
import types

import torch
from torch import nn

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples" / "train_gpt.py"
SCRIPTS = {}


def script(aside=False, quick=False, needs=(), peak=True):
    """`peak=False`: the witness learns some things only later, so that the peak of the whole run is not judged."""
    def register(function):
        function.aside, function.quick, function.needs, function.peak = aside, quick, needs, peak
        SCRIPTS[function.__name__] = function
        return function
    return register


def example_gpt(**settings):
    spec = importlib.util.spec_from_file_location("train_gpt", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arguments = dict(layers=3, hidden=512, heads=8, vocab=8192, seq=512, batch=4, attention="eager", checkpoint=False)
    arguments.update(settings)
    return module.GPT(types.SimpleNamespace(**arguments)).to("cuda")


def train(witness, model, make_optimizer, steps=3, accumulate=1, batch=4, seq=512, vocab=8192, autocast=None,
          set_to_none=True, loss_of=None, head=None):
    """The usual loop. Marks: after the forward pass, after the backward pass, after the step, of the last step."""
    optimizer = make_optimizer(p for p in model.parameters() if p.requires_grad)
    witness.watch(model, optimizer, head=head)

    def ordinary_loss(ids):
        logits = model(ids[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())

    loss_of = loss_of or ordinary_loss
    for step in range(steps):
        last = step == steps - 1
        for part in range(accumulate):
            ids = torch.randint(vocab, (batch, seq + 1), device="cuda")
            witness.say(ids, "inputs")
            with torch.autocast("cuda", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
                loss = loss_of(ids)
            if last and part == accumulate - 1:
                witness.mark("forward")
            loss.backward()
            if last and part == accumulate - 1:
                witness.mark("backward")
        optimizer.step()
        if last:
            witness.mark("step")
        optimizer.zero_grad(set_to_none=set_to_none)
    witness.mark("end")


def adamw(**settings):
    return lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, **settings)


# A GPT that writes its attention out.

@script(quick=True)
def gpt_eager(witness):
    """Scores written out, AdamW (foreach)."""
    model = example_gpt()
    train(witness, model, adamw(foreach=True), head=model.head.weight)


@script()
def gpt_checkpoint(witness):
    """Activation checkpointing of each block."""
    model = example_gpt(checkpoint=True, layers=6)
    train(witness, model, adamw(), head=model.head.weight)


@script()
def gpt_autocast(witness):
    """bf16 autocast over float32 weights, AdamW (fused)."""
    model = example_gpt()
    train(witness, model, adamw(fused=True), autocast=torch.bfloat16, head=model.head.weight)


@script()
def gpt_autocast_loop(witness):
    """bf16 autocast, fused attention, AdamW one tensor at a time."""
    model = example_gpt(attention="fused")
    train(witness, model, adamw(foreach=False), autocast=torch.bfloat16, head=model.head.weight)


@script(aside=True)
def gpt_accumulate(witness):
    """Gradients add up over micro-batches and are zeroed in place; SGD with momentum."""
    model = example_gpt()
    train(witness, model, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), accumulate=3, set_to_none=False,
          head=model.head.weight)


@script()
def gpt_sgd(witness):
    """SGD with momentum."""
    model = example_gpt(layers=2)
    train(witness, model, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), head=model.head.weight)


@script(aside=True)
def gpt_adafactor(witness):
    """Adafactor: its state is smaller than the weights."""
    model = example_gpt(layers=2)
    train(witness, model, lambda p: torch.optim.Adafactor(p, lr=1e-3), head=model.head.weight)


# Fused attention, by backend. All in bf16, as flash attention wants.

def fused(witness, backend):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    model = example_gpt(attention="fused").bfloat16()
    with sdpa_kernel(getattr(SDPBackend, backend)):
        train(witness, model, adamw(), head=model.head.weight)


@script(quick=True)
def gpt_flash(witness):
    """scaled_dot_product_attention by flash attention."""
    fused(witness, "FLASH_ATTENTION")


@script(aside=True)
def gpt_efficient(witness):
    """scaled_dot_product_attention by the memory-efficient kernels."""
    fused(witness, "EFFICIENT_ATTENTION")


@script()
def gpt_math(witness):
    """scaled_dot_product_attention by plain operators."""
    fused(witness, "MATH")


# Models that nobody here wrote.

def llama(**settings):
    import transformers
    values = dict(vocab_size=8192, hidden_size=512, intermediate_size=1376, num_hidden_layers=3, num_attention_heads=8,
                  num_key_value_heads=2, max_position_embeddings=2048, bos_token_id=1, eos_token_id=2, pad_token_id=3,
                  tie_word_embeddings=False)
    values.update(settings)
    with torch.device("cuda"):
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**values))


def causal(model):
    return lambda ids: model(input_ids=ids, labels=ids, use_cache=False).loss


@script(needs=("transformers",))
def llama_sdpa(witness):
    """transformers' Llama, grouped queries, fused attention, bf16."""
    model = llama().bfloat16()
    train(witness, model, adamw(), loss_of=causal(model), head=model.lm_head.weight)


@script(aside=True, needs=("transformers",))
def llama_eager(witness):
    """transformers' Llama with its scores written out, float32."""
    model = llama(attn_implementation="eager")
    train(witness, model, adamw(), loss_of=causal(model), head=model.lm_head.weight)


@script(needs=("transformers",))
def gpt2_eager(witness):
    """transformers' GPT-2: dropout, tied embeddings, Conv1D."""
    import transformers
    config = transformers.GPT2Config(vocab_size=8192, n_positions=1024, n_embd=512, n_layer=3, n_head=8,
                                     attn_implementation="eager")
    with torch.device("cuda"):
        model = transformers.GPT2LMHeadModel(config)
    train(witness, model, adamw(), loss_of=causal(model), head=model.lm_head.weight)


@script(needs=("transformers", "peft"))
def llama_lora(witness):
    """LoRA: most parameters are frozen, gradients and state are small."""
    import peft
    model = llama().bfloat16()
    head = model.lm_head.weight
    model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    train(witness, model, adamw(), loss_of=causal(model), head=head)


def tiny(name, **settings):
    """A random model of transformers on the GPU."""
    import transformers
    config = getattr(transformers, f"{name}Config")
    architecture = {"T5": "T5ForConditionalGeneration", "ViT": "ViTForImageClassification",
                    "GPT2": "GPT2LMHeadModel"}.get(name, f"{name}ForCausalLM")
    with torch.device("cuda"):
        return getattr(transformers, architecture)(config(**settings))


@script(needs=("transformers",))
def t5(witness):
    """Encoder and decoder, relative positions, cross attention, scores written out."""
    model = tiny("T5", vocab_size=8192, d_model=512, d_kv=64, d_ff=1024, num_layers=2, num_heads=8,
                 decoder_start_token_id=0)
    train(witness, model, adamw(), seq=255, loss_of=lambda ids: model(input_ids=ids, labels=ids).loss,
          head=model.lm_head.weight)


@script(needs=("transformers",))
def vit(witness):
    """Images through convolution and attention; no vocabulary."""
    model = tiny("ViT", hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536)

    def loss_of(ids):
        images = torch.randn(16, 3, 224, 224, device="cuda")
        labels = ids[:16, 0] % 2
        witness.say([images, labels], "inputs")
        return model(pixel_values=images, labels=labels).loss

    train(witness, model, adamw(), batch=16, seq=1, vocab=2, loss_of=loss_of)


@script(aside=True, needs=("transformers",))
def mixtral(witness):
    """A mixture of experts, bf16."""
    model = tiny("Mixtral", vocab_size=8192, hidden_size=512, intermediate_size=1024, num_hidden_layers=2,
                 num_attention_heads=8, num_key_value_heads=2, num_local_experts=4, max_position_embeddings=1024,
                 bos_token_id=1, eos_token_id=2, pad_token_id=3).bfloat16()
    train(witness, model, adamw(), loss_of=causal(model), head=model.lm_head.weight)


def train_by_trainer(witness, model, data, head=None):
    """transformers' Trainer: its loop, its optimizer, its data. Marks: before and after the last step."""
    import tempfile

    import transformers

    class Marks(transformers.TrainerCallback):
        def on_train_begin(self, args, state, control, optimizer=None, **_):
            witness.watch(model, getattr(optimizer, "optimizer", optimizer), head=head)

        def on_pre_optimizer_step(self, args, state, control, **_):
            if state.global_step == 2:
                witness.mark("backward")

        def on_step_end(self, args, state, control, **_):
            if state.global_step == 3:
                witness.mark("step")

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, per_device_train_batch_size=4, max_steps=3, report_to=[],
                                                   save_strategy="no", disable_tqdm=True, logging_strategy="no")
        transformers.Trainer(model, arguments, train_dataset=data, callbacks=[Marks()]).train()


def texts(length=512, count=12):
    return [{"input_ids": row, "labels": row} for row in torch.randint(8192, (count, length))]


TRAINER = ("transformers", "accelerate")


@script(needs=TRAINER)
def trainer(witness):
    """GPT-2 under the Trainer."""
    model = tiny("GPT2", vocab_size=8192, n_positions=512, n_embd=512, n_layer=2, n_head=8)
    train_by_trainer(witness, model, texts(), model.lm_head.weight)


@script(aside=True, needs=TRAINER)
def trainer_llama(witness):
    """Llama under the Trainer."""
    model = llama(num_hidden_layers=2)
    train_by_trainer(witness, model, texts(), model.lm_head.weight)


@script(needs=TRAINER)
def trainer_t5(witness):
    """T5 under the Trainer."""
    model = tiny("T5", vocab_size=8192, d_model=512, d_kv=64, d_ff=1024, num_layers=2, num_heads=8,
                 decoder_start_token_id=0)
    train_by_trainer(witness, model, texts(256), model.lm_head.weight)


@script(aside=True, needs=TRAINER)
def trainer_vit(witness):
    """ViT under the Trainer."""
    model = tiny("ViT", hidden_size=384, num_hidden_layers=3, num_attention_heads=6, intermediate_size=1536)
    images = [{"pixel_values": image, "labels": 1} for image in torch.randn(12, 3, 224, 224)]
    train_by_trainer(witness, model, images)


@script(aside=True, needs=TRAINER)
def trainer_mixtral(witness):
    """Mixtral under the Trainer."""
    model = tiny("Mixtral", vocab_size=8192, hidden_size=512, intermediate_size=1024, num_hidden_layers=2,
                 num_attention_heads=8, num_key_value_heads=2, num_local_experts=4, max_position_embeddings=1024,
                 bos_token_id=1, eos_token_id=2, pad_token_id=3)
    train_by_trainer(witness, model, texts(), model.lm_head.weight)


# More than one process, by the libraries that such jobs use; here of one rank.

def one_rank():
    import tempfile

    import torch.distributed as dist
    folder = tempfile.mkdtemp(prefix="vramtrack-rank-")
    dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1,
                            device_id=torch.device("cuda", 0))


@script(peak=False)
def ddp(witness):
    """DistributedDataParallel: gradients are averaged in buckets."""
    from torch.nn.parallel import DistributedDataParallel
    one_rank()
    model = example_gpt(layers=2, attention="fused")
    parallel = DistributedDataParallel(model, bucket_cap_mb=8)

    def average(_, bucket):
        with torch._C.DisableTorchFunction():
            witness.say(bucket.buffer(), "communication")
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    parallel.register_comm_hook(None, average)
    train(witness, parallel, adamw(), head=model.head.weight)


# Token by token.

def generate(witness, cache, layers=3, heads=2, prompt=512, tokens=24, window=None, model=None, **settings):
    """Greedy decoding; a mark in the middle. KV bytes follow from the formula."""
    import transformers
    model = model or llama(num_key_value_heads=heads, num_hidden_layers=layers, **settings).bfloat16()
    model.eval()
    witness.watch(model, cache=cache, head=model.lm_head.weight)
    ids = torch.randint(4, 8192, (4, prompt), device="cuda")
    mask = torch.ones_like(ids)
    witness.say([ids, mask], "inputs")

    class Marks(transformers.StoppingCriteria):
        def __call__(self, input_ids, scores, **_):
            if input_ids.shape[1] == prompt + tokens // 2:
                witness.say(input_ids, "inputs", "activations")
                witness.mark("middle")
            return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)

    with torch.no_grad():
        output = model.generate(ids, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens,
                                do_sample=False, disable_compile=True, past_key_values=cache,
                                stopping_criteria=[Marks()], return_dict_in_generate=True)
    witness.say(output.sequences, "inputs", "activations")
    cached = prompt + tokens // 2 - 1
    if isinstance(cache, transformers.StaticCache):
        cached = prompt + tokens
    cached = min(cached, window) if window else cached  # a view of what the last cat made
    return {"middle": 2 * layers * 4 * heads * cached * 64 * 2}


@script(quick=True, needs=("transformers",))
def generate_dynamic(witness):
    """A cache that grows by cat, grouped queries."""
    import transformers
    return generate(witness, transformers.DynamicCache())


@script(aside=True, needs=("transformers",))
def generate_static(witness):
    """A cache of fixed size, one key head for all (MQA)."""
    import transformers
    config = transformers.LlamaConfig(hidden_size=512, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=1)
    return generate(witness, transformers.StaticCache(config=config, max_cache_len=512 + 24), heads=1)


@script(needs=("transformers",))
def generate_eager(witness):
    """Every head has its keys (MHA), scores written out."""
    import transformers
    return generate(witness, transformers.DynamicCache(), heads=8, attn_implementation="eager")


@script(needs=("transformers",))
def generate_window(witness):
    """A sliding window bounds what is kept."""
    import transformers
    model = tiny("Mistral", vocab_size=8192, hidden_size=512, intermediate_size=1376, num_hidden_layers=3,
                 num_attention_heads=8, num_key_value_heads=2, sliding_window=128, max_position_embeddings=2048,
                 bos_token_id=1, eos_token_id=2, pad_token_id=3).bfloat16()
    return generate(witness, transformers.DynamicCache(config=model.config), model=model, window=128)


@script()
def pooled(witness):
    """Keys and values of many requests in one piece that is taken at the start, as servers do."""
    model = example_gpt(attention="fused").bfloat16().eval()
    witness.watch(model, head=model.head.weight)

    class Server:
        def allocate_kv_cache(self):
            return torch.empty(3, 2, 1024, 16, 8, 64, dtype=torch.bfloat16, device="cuda")

    pool = Server().allocate_kv_cache()
    witness.say(pool, "kv_cache")
    with torch.no_grad():
        for step in range(4):
            ids = torch.randint(8192, (4, 512), device="cuda")
            witness.say(ids, "inputs")
            logits = model(ids)
            pool[0, 0, step] = logits[0, :16, :512].view(16, 8, 64)
            if step == 2:
                witness.mark("middle")
            del logits
    return {"middle": pool.nbytes}
