"""The claims and how each is checked. A check gets the bench of scripts/claims and returns (verdict, evidence); the
verdict follows from the numbers, so that a change of the program or of the model shows up in it."""

GB, GIB, MIB = 1e9, 2 ** 30, 2 ** 20
LENGTHS = (512, 1024, 2048, 4096)
HOLDS, PARTLY, FAILS, GPU = "holds", "holds in part", "fails", "needs a GPU"


def gb(value):
    return f"{value / GB:.2f} GB"


def gib(value):
    return f"{value / GIB:.1f} GiB"


def times(values, digits=2):
    return ", ".join(f"{v:.{digits}f}" for v in values)


def percent(part):
    return f"{100 * part:.0f} %"


def ratios(values):
    return [b / a for a, b in zip(values, values[1:])]


def saved(estimate):
    """Bytes that an estimate keeps for the backward pass."""
    rows = ("activations", "activations/kv", "attention")
    return sum(t["bytes"] for t in estimate["terms"] if t["category"] in rows)


def states(estimate):
    return sum(estimate["categories"].get(n, 0) for n in ("parameters", "gradients", "optimizer_state"))


def a1(b):
    eager, fused = ratios(b.peaks("eager")), ratios(b.peaks("fused"))
    good = all(1.4 <= r <= 1.8 for r in eager + fused)
    return HOLDS if good else FAILS, (f"512 to 4096, each doubling: eager attention times {times(eager)}, fused "
                                      f"{times(fused)}. It is the share of what grows, not a constant")


def a2(b):
    fixed = [b.exponent("fused", n) for n in ("parameters", "gradients", "optimizer_state")]
    growing = [b.exponent("fused", "activations"), b.exponent("prefill", "kv_cache")]
    good = all(e == 0 for e in fixed) and all(e is not None and abs(e - 1) <= 0.02 for e in growing)
    return HOLDS if good else FAILS, (f"exponents: parameters, gradients, state {times(fixed)}; activations and KV cache "
                                      f"{times(growing)}; eager attention {b.exponent('eager', 'attention'):.2f}")


def a3(b):
    base = b.estimate()["categories"]
    eight = b.estimate(inference=True, dtype="int8")["categories"]["parameters"]
    share = {o: b.estimate(optimizer=o)["categories"]["optimizer_state"] / base["parameters"]
             for o in ("adamw", "adamw-mixed", "adamw-8bit")}
    return PARTLY, (f"weights {gb(base['parameters'])} in half precision, {gb(eight)} in 8 bit; gradients the same "
                    f"{gb(base['gradients'])}. State is {share['adamw']:.1f} times the weights only in their precision, "
                    f"{share['adamw-mixed']:.1f} with float32 moments and master weights; 8-bit Adam is "
                    f"{share['adamw-8bit']:.2f} times half-precision weights, not 0.5")


def a4(b):
    one = b.estimate(inference=True, seq=1)["categories"]["kv_cache"]
    ten = b.estimate(inference=True, seq=10000)["categories"]["kv_cache"]
    grouped = b.estimate(inference=True, seq=1, kv_heads=8)["categories"]["kv_cache"]
    exact = all(b.row("prefill", "kv_cache")[i] == b.fact(f"prefill {n}", "kv") for i, n in enumerate(LENGTHS))
    good = one == 524288 and exact
    return HOLDS if good else FAILS, (f"{one:,} bytes a token, {gb(ten)} for 10,000; runs agree to the byte. Where every head "
                                      f"has keys and values: with 8 of 32 it is {grouped:,}")


def a5(b):
    eager, fused = b.row("eager", "attention"), b.row("fused", "attention")
    good = abs(eager[3] / eager[1] - 16) < 0.5
    return HOLDS if good else FAILS, (f"the factor, with eager attention: {eager[1] / MIB:.0f} to {eager[3] / MIB:.0f} MiB here, "
                                      f"{eager[3] / eager[1]:.1f} times. The sizes depend on batch, heads and layers; fused "
                                      f"attention keeps {fused[3] / MIB:.1f} MiB at 4096")


def a6(b):
    plain, kept = b.peaks("eager"), b.peaks("eager checkpointed", (1024, 4096))
    fused = b.peaks("checkpointed")
    one, two, three = plain[3] / plain[1], kept[1] / kept[0], fused[3] / fused[1]
    good = three < one and abs(b.exponent("checkpointed", "activations") - 1) < 0.05
    return PARTLY if good else FAILS, (f"1024 to 4096, peak: eager {one:.1f} times, eager with checkpointing {two:.1f}, fused with "
                                       f"checkpointing {three:.1f}; the factors are those of this model's shares. With checkpointing "
                                       "it is linear only if attention is fused: one layer's scores remain")


def a7(b):
    rows = b.row("batch", "activations", (1, 2, 4, 8))
    one, two = b.fact("accumulate 1", "peak"), b.fact("accumulate 2", "peak")
    gradients = b.row("accumulate", "gradients", (1, 2, 4, 8))[0]
    good = abs(rows[3] / rows[2] - 2) < 0.05
    return PARTLY if good else FAILS, (f"batch 4 to 8: activations times {rows[3] / rows[2]:.2f}. Accumulation 2 adds "
                                       f"{(two - one) / MIB:.0f} MiB to the peak, at most the gradients ({gradients / MIB:.0f} "
                                       "MiB), which then outlive a backward pass")


def a8(b):
    peaks = [b.fact(f"accumulate {n}", "peak") for n in (1, 2, 4, 8)]
    good = peaks[1] == peaks[2] == peaks[3]
    return HOLDS if good else FAILS, (f"peaks in MiB for 1, 2, 4, 8: {times([p / MIB for p in peaks], 0)}. Flat from 2 on; the "
                                      "time needs a GPU. The loop must count its micro-batches")


def a9(b):
    plain, kept = b.row("fused", "activations"), b.row("checkpointed", "activations")
    here = 1 - kept[2] / plain[2]
    full = saved(b.estimate(recompute="full", seq=2048)) / saved(b.estimate(seq=2048))
    eager = saved(b.estimate(recompute="full", seq=2048, attention="eager")) / saved(b.estimate(seq=2048, attention="eager"))
    good = 0.5 <= 1 - full <= 0.7
    return HOLDS if good else FAILS, (f"the more layers, the more: {percent(here)} less here (one layer is made again at a time); of "
                                      f"what a 7B keeps at 2048 tokens {percent(1 - full)} with fused and {percent(1 - eager)} with "
                                      "eager attention")


def a10(b):
    s = b.size
    unit = s["hidden_size"] * s["num_hidden_layers"]
    fused = [v / (n * unit) for v, n in zip(b.row("fused", "activations"), LENGTHS)]
    eager = [(v + w) / (n * unit) for v, w, n in zip(b.row("eager", "activations"), b.row("eager", "attention"), LENGTHS)]
    good = max(fused) / min(fused) < 1.05
    return PARTLY if good else FAILS, (f"with fused attention: {times(fused, 1)} bytes x batch x length x hidden x layers at 512 to "
                                       f"4096; with eager attention {times(eager, 0)}, no constant")


def a11(b):
    table = b.growth("fused")
    at = {r["name"]: r["bytes"][3] for r in table["categories"]}
    largest = max(at, key=at.get)
    weights = b.estimate(inference=True)["categories"]["parameters"]
    good = largest == "kv_cache"
    return HOLDS if good else FAILS, (f"in training at 4096 the largest row is {largest}. In inference a 7B's cache passes its "
                                      f"weights at {weights / 524288:,.0f} tokens x sequences")


def a12(b):
    kept = b.estimate(seq=8192, batch=2, recompute="full")
    plain = b.estimate(seq=8192, batch=2)
    eager = b.estimate(seq=8192, batch=2, attention="eager")["categories"]["attention"]
    good = kept["device_bytes"] <= 48 * GIB
    return HOLDS if good else FAILS, (f"the states alone take {gb(states(kept))}; with recomputation {gib(kept['device_bytes'])}, "
                                      f"without {gib(plain['device_bytes'])}. Eager scores would be {gib(eager)}, over all heads "
                                      "and layers")


def a13(b):
    errors = []
    for kind, attention in (("eager", "eager"), ("fused", "fused")):
        for n in LENGTHS:
            found = b.own_estimate(seq=n, attention=attention)["peak"]["bytes"]
            errors.append(found / b.fact(f"{kind} {n}", "peak") - 1)
    good = max(map(abs, errors)) <= 0.1
    return HOLDS if good else PARTLY, (f"where every term is counted: `estimate` is off by {100 * min(errors):+.1f} to "
                                       f"{100 * max(errors):+.1f} % over {len(errors)} runs. What is left is temporaries and "
                                       "workspaces, not fragmentation: allocated bytes are compared")


def share_of_attention(b, name):
    view = b.report(name)["moment"]
    return view["categories"].get("attention", 0) / max(view["allocated_bytes"], 1)


def a14(b):
    long, short, fused = (share_of_attention(b, n) for n in ("eager 4096", "eager 512", "fused 4096"))
    good = long > 0.5
    return PARTLY if good else FAILS, (f"with eager attention and long sequences: scores and softmax are {percent(long)} of the "
                                       f"peak at 4096, {percent(short)} at 512; with fused attention {percent(fused)}")


def a15(b):
    rest = "activations"
    slopes = {r["name"]: r["law"]["linear_bytes"] for r in b.growth("layers", (2, 4, 6))["categories"]}
    exponent = b.exponent("layers", rest, (2, 4, 6))
    seven = {n: saved(b.estimate(layers=n)) / n for n in (24, 96)}
    cache = {n: b.estimate(layers=n, inference=True)["categories"]["kv_cache"] / n for n in (24, 96)}
    good = cache[96] / seven[96] > 1 > cache[24] / seven[24]
    return HOLDS if good else FAILS, (f"both are linear in layers: exponent {exponent:.2f}, {slopes[rest] / MIB:.1f} MiB of activations "
                                      f"a layer here. At 7B's width a layer's KV is {percent(cache[24] / seven[24])} of its "
                                      f"activations with 24 layers and {percent(cache[96] / seven[96])} with 96")


def a16(b):
    wide = b.estimate(batch=8, seq=2048, lora_rank=8)["remedies"]
    long = b.estimate(batch=1, seq=16384, lora_rank=8)["remedies"]
    accumulation = any("accumulation" in r["change"] for r in long)
    words = ["; ".join(f"{r['change']} ({gib(r['saving_bytes'])})" for r in list_[:2]) for list_ in (wide, long)]
    first = all(r[0]["change"].startswith("recompute") for r in (wide, long))
    return PARTLY if first and not accumulation else FAILS, (f"the lists contradict each other; checkpointing first is right. Ranked for a 7B with LoRA, batch 8 at 2048: "
                                                   f"{words[0]}. Batch 1 at 16384: {words[1]}; accumulation saves nothing at "
                                                   "a micro-batch of 1")


def a17(b):
    small = {"layers": 16, "hidden": 2048, "heads": 32, "intermediate": 8192, "vocab": 32000}
    big = b.estimate(seq=32768)
    less = b.estimate(small, seq=32768)
    good = less["device_bytes"] > 0.9 * big["device_bytes"]
    return HOLDS if good else FAILS, (f"at 32,768 tokens a 7B keeps {gib(saved(big))} for the backward pass beside {gib(states(big))} of states; "
                                      f"16 layers of half the width keep {gib(saved(less))}: a smaller model helps, with "
                                      "both")


def a18(b):
    launches = [b.kernels(f"accumulate {n}") for n in (1, 2, 4, 8)]
    each = (launches[3] - launches[2]) / 8
    again = b.kernels("checkpointed 512") / b.kernels("fused 512")
    return GPU, (f"the time. The reason given fails: nothing is computed again. Kernels launched for 1, 2, 4, 8: "
                 f"{', '.join(f'{n:,}' for n in launches)}, {each:.0f} for each further micro-batch; checkpointing, which does recompute, "
                 f"launches {again:.2f} times as many")


def a19(b):
    return GPU, "utilisation is time; nothing about memory to check"


def a20(b):
    device = b.report("prefill 4096", "--category", "kv_cache", "--by", "module")
    total = sum(g["bytes"] for g in device["groups"])
    good = total == b.fact("prefill 4096", "kv")
    return HOLDS if good else FAILS, (f"and without hooks: `report --category kv_cache --by module` sums to {total:,} bytes, what the "
                                      "cache's own tensors hold")


def a21(b):
    groups = b.report("eager 4096", "--by", "kernel")["groups"]
    top = groups[0]
    return FAILS, (f"it mixes copies made with memory held. By kernel, {percent(top['bytes'] / sum(g['bytes'] for g in groups))} of "
                   f"the live bytes at the peak were allocated for one kernel, and how often a copy runs says nothing about them")


def b1(b):
    sizes = {t: b.estimate(inference=True, dtype=t)["categories"]["parameters"] for t in ("float32", "bfloat16", "int8", "nf4")}
    wanted = {"float32": 28, "bfloat16": 14, "int8": 7, "nf4": 3.5}
    good = all(abs(sizes[t] / GB / wanted[t] - 1) < 0.2 for t in sizes)
    return HOLDS if good else FAILS, (f"{', '.join(f'{gb(v)} in {t}' for t, v in sizes.items())}: 6.74, not 7, billion weights; "
                                      "embeddings stay in half precision, quantised blocks carry scales")


def b2(b):
    peak, settled, reserved = (b.fact("load", k) for k in ("peak", "settled", "reserved"))
    return PARTLY, (f"loading: {peak / settled:.1f} times the final weights where float32 comes first. Reserved for good: "
                    f"{percent(reserved / settled - 1)} more than allocated here, the unused rest of segments; there is no default of 20 %")


def b3(b):
    one, eight = saved(b.estimate(seq=2048, batch=1)), saved(b.estimate(seq=2048, batch=8))
    return FAILS, (f"linear in the batch, yes ({eight / one:.2f} times); but one sequence of a 7B keeps {gib(one)}, eight keep {gib(eight)}, with "
                   "fused attention and no recomputation")


def b4(b):
    one = b.estimate(inference=True, seq=2048)["categories"]["kv_cache"]
    four = b.estimate(inference=True, seq=2048, requests=4)["categories"]["kv_cache"]
    return FAILS, f"heads are in the hidden size already: {gb(one)} for one request of 2048 tokens, {gb(four)} for four"


def b5(b):
    return GPU, ("contexts are the driver's: `report` measures them as outside. Workers of a data loader take host memory, and "
                 "memory of the device only if they use it")


def b6(b):
    eager, fused = b.fact("prefill eager", "kv"), b.fact("prefill 4096", "kv")
    before, after = b.row("eager", "attention")[3], b.row("fused", "attention")[3]
    return (FAILS if eager == fused else HOLDS), (f"the KV cache is {fused:,} bytes with either; what goes is attention's intermediates, "
                                                  f"{before / MIB:.0f} to {after / MIB:.1f} MiB in training at 4096. Its kernels need Ampere")


def b7(b):
    def less(seq):
        whole = b.estimate(inference=True, seq=seq)["categories"]["kv_cache"]
        return 1 - b.estimate(inference=True, seq=seq, window=4096)["categories"]["kv_cache"] / whole
    found = {n: less(n) for n in (4096, 8192, 12288, 32768)}
    return PARTLY, (f"exactly 1 - window / length: with 4,096 it saves {', '.join(f'{percent(v)} at {n:,}' for n, v in found.items())}; "
                    "so between two and three windows")


def b8(b):
    ranks = {r: b.estimate(lora_rank=r)["trainable"] for r in (8, 512)}
    run = b.fact("lora", "trained")
    s = b.size
    exact = s["num_hidden_layers"] * 2 * 8 * 2 * s["hidden_size"]
    good = run == exact
    return FAILS if good else PARTLY, (f"hidden / 8 is rank 512: {ranks[512] / 1e6:.0f} million trained weights in a 7B, against {ranks[8] / 1e6:.1f} with the rank 8 "
                                       f"that people use; a run with rank 8 trains {run:,}, as r (in + out) says")


def b9(b):
    plain, kept = b.peaks("fused"), b.peaks("checkpointed")
    less = [1 - k / p for k, p in zip(kept, plain)]
    return GPU, (f"the time. Of the whole peak it takes {percent(less[0])} at 512 and {percent(less[3])} at 4096 here: states and logits stay")


def b10(b):
    cached, got, retries = (b.fact("full cache", k) for k in ("cached_before", "got", "retries"))
    good = retries >= 1 and got == 800 * MIB
    return FAILS if good else PARTLY, (f"emptying the cache by hand is not needed: with {cached / MIB:.0f} of 1024 MiB cached, a request of 800 MiB was served "
                                       f"after {retries} retry of the allocator's own. Splitting limits go into PYTORCH_ALLOC_CONF; "
                                       "`fragmentation` replays what they would change")


def b11(b):
    found = b.estimate(batch=4, seq=2048, optimizer="adamw-8bit", recompute="full")
    return (FAILS if found["device_bytes"] > 24 * GIB else HOLDS), (f"8-bit weights cannot be trained; in half precision with 8-bit Adam and full "
                                                                    f"recomputation it takes {gib(found['device_bytes'])}, {gb(states(found))} of it states")


def b12(b):
    causes = ("capacity", "fragmentation", "leak", "other process", "outside", "limit", "transient peak", "host memory")
    return FAILS, f"`oom` tells {len(causes)} causes apart: {', '.join(causes)}"


def b13(b):
    seen, device = b.fact("host profiler", "seen"), b.fact("host profiler", "device")
    return (FAILS if seen < 0.01 * device else HOLDS), (f"host profilers do not see it: of {device / MIB:.0f} MiB on the device one saw "
                                                        f"{seen / 1024:.1f} KiB. `leaks` follows the device's blocks")


def b14(b):
    found = {n: b.estimate(dtype="nf4", lora_rank=8, recompute="full", optimizer="adafactor", seq=n)["device_bytes"]
             for n in (1024, 4096)}
    good = found[1024] <= 8 * GIB
    return HOLDS if good else FAILS, (f"{gib(found[1024])} for a 7B at 1,024 tokens, {gib(found[4096])} at 4,096, by the shape (context assumed)")


def b15(b):
    weights = b.estimate(inference=True, dtype="nf4")["categories"]["parameters"]
    tokens = (24 * GIB - weights - 0.5 * GIB) / 524288
    return HOLDS, (f"beyond {tokens:,.0f} tokens x sequences: 4-bit weights take {gb(weights)}, the KV cache stays in half precision at "
                   "512 KiB a token")


def b16(b):
    return GPU, "pages move when a real driver decides; `report` has managed memory in a line of its own"


def b17(b):
    whole, parts = b.report("prefill 4096"), b.report("prefill in chunks")
    kv = (b.fact("prefill 4096", "kv"), b.fact("prefill in chunks", "kv"))
    active = [d["allocated_peak"]["categories"].get("activations", 0) for d in (whole, parts)]
    good = kv[0] == kv[1] and active[1] < 0.5 * active[0]
    return HOLDS if good else FAILS, (f"4,096 tokens at once or by 1,024: KV {kv[1] / MIB:.0f} MiB either way, activations at the peak "
                                      f"{active[0] / MIB:.0f} and {active[1] / MIB:.0f} MiB")


def b18(b):
    active, allocated = b.fact("host profiler", "active"), b.fact("host profiler", "allocated")
    return FAILS, (f"allocated 18.23 and active 15.67 GB cannot be: active memory is allocated memory and what waits for a stream "
                   f"(a run: {active / MIB:.0f} and {allocated / MIB:.0f} MiB)")


def b19(b):
    return GPU, "workspaces that libraries choose by trying; `report` has them as workspace, and pinned memory in a line of its own"


def b20(b):
    model = {"layers": 40, "hidden": 5120, "heads": 40, "intermediate": 13824, "vocab": 152064}
    whole = b.estimate(model, batch=8, recompute="full", optimizer="adamw-8bit")
    adapters = b.estimate(model, batch=8, recompute="full", dtype="int8", lora_rank=8, chunked_loss=True)
    good = adapters["device_bytes"] <= 40 * GIB
    return (PARTLY if good else FAILS), (f"training every weight with 8-bit state takes {gib(whole['device_bytes'])}. LoRA on 8-bit weights, "
                                         f"2,048 tokens, the loss in chunks: {gib(adapters['device_bytes'])}")


def b21(b):
    rows = [f"{o} {b.estimate(optimizer=o)['categories'].get('optimizer_state', 0) / 6738415616:.3g}"
            for o in ("sgd", "sgd-momentum", "adamw", "adamw-mixed", "adamw-8bit", "adafactor")]
    return HOLDS, f"the tables are lost; rebuilt for bf16 weights, bytes of state per weight: {', '.join(rows)}. Weights: see B1"


def b22(b):
    import subprocess
    files = [b.traces[f"batch {n}"][0] for n in (1, 2)]
    codes = [subprocess.run([b.vramtrack, "diff", *pair, "--fail-over", "0"], capture_output=True).returncode
             for pair in (files, files[::-1])]
    return HOLDS if codes == [1, 0] else FAILS, (f"`diff --fail-over` in a pipeline: exit code {codes[0]} where the peak grew, {codes[1]} where it "
                                                 "fell; `oom` and `estimate` say what to change")


ROWS = [
    ("A1", "twice the sequence length: 40 to 80 % more memory", a1),
    ("A2", "parameters, gradients and state do not depend on length, activations and KV do", a2),
    ("A3", "7B: 14 GB of half-precision weights, half of it in 8 bit, gradients as large, AdamW twice the weights, its 8-bit form half", a3),
    ("A4", "KV = 2 x tokens x layers x hidden x bytes: 512 KB a token for 7B, 5 GB for 10,000", a4),
    ("A5", "attention matrices grow from 256 MB at 1024 tokens to 4 GB at 4096, 16 times", a5),
    ("A6", "1024 to 4096 tokens: 4 to 6 times the peak, with checkpointing little over 2", a6),
    ("A7", "batch 4 to 8 doubles activations and KV; accumulating twice at 4 keeps the peak", a7),
    ("A8", "accumulation from 1 to 8 keeps the peak flat and takes longer", a8),
    ("A9", "checkpointing saves 50 to 70 % of the activations", a9),
    ("A10", "activations are batch x length x hidden x layers x a coefficient", a10),
    ("A11", "without sparse attention KV is always the largest item above 2048 tokens", a11),
    ("A12", "7B at 8192 tokens, batch 2, fits 48 GB with recomputation (about 40), and not without (above 50)", a12),
    ("A13", "adding up by hand comes within 10 %; the rest is fragmentation", a13),
    ("A14", "batched products and softmax lead the profiler's table", a14),
    ("A15", "above 48 layers KV costs more per layer than activations", a15),
    ("A16", "what to try first: one list puts accumulation first, the other puts it last", a16),
    ("A17", "long sequences run out by activations and KV; a smaller model does not help", a17),
    ("A18", "accumulation costs tens of percent of time, because intermediates are computed again", a18),
    ("A19", "where utilisation is tight, recomputing is steadier than finer micro-batches", a19),
    ("A20", "record KV layer by layer with hooks to see it alone", a20),
    ("A21", "see whether own kernels or copies dominate the profile", a21),
    ("B1", "7B weights: 28, 14, 7, 3.5 GB in 32, 16, 8, 4 bit", b1),
    ("B2", "at run time more than the file: buffers of loading, and PyTorch reserves 20 % by default", b2),
    ("B3", "7B at 2048 tokens: 1.4 GB of activations at batch 1, linear, 11.2 at batch 8", b3),
    ("B4", "KV = 2 x batch x length x hidden x layers x heads x bytes; 7B at 2048 1.2 GB, four requests above 5", b4),
    ("B5", "0.5 to 1 GB of context, 0.3 GB for each loading worker, 2 GB to spare", b5),
    ("B6", "FlashAttention-2 takes 30 % off the KV cache, and needs Turing", b6),
    ("B7", "a sliding window saves 50 to 70 % of KV", b7),
    ("B8", "LoRA: rank about hidden / 8, on q and v", b8),
    ("B9", "checkpointing: 30 % slower, 60 % less memory", b9),
    ("B10", "against fragmentation: empty the cache, limit splitting", b10),
    ("B11", "24 GB: 7B in 8 bit, batch 4, 2048 tokens, every weight trained with Adam", b11),
    ("B12", "there are two kinds of OOM: allocation failed, and fragmented", b12),
    ("B13", "find leaks with a line-by-line memory profiler", b13),
    ("B14", "8 GB: 7B in 4 bit, batch 1, up to 1024 tokens, Adafactor, checkpointing, LoRA", b14),
    ("B15", "a 4-bit 7B still ran out on 24 GB", b15),
    ("B16", "paged optimizers put state into host memory", b16),
    ("B17", "long texts in chunks of 1024 with the cache carried on", b17),
    ("B18", "a sample summary: 18.23 allocated, 22.50 reserved, 15.67 GB active", b18),
    ("B19", "look at cudnn.benchmark, pinned memory, torch.compile", b19),
    ("B20", "14B on 40 GB at batch 8: fused attention, 8 bit, checkpointing", b20),
    ("B21", "optimizers and quantisation methods compared", b21),
    ("B22", "measure, analyse, improve, in a closed loop", b22),
]
