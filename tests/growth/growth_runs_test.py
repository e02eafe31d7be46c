"""`vramtrack growth` over real PyTorch jobs on the simulated GPU: exponents that theory gives, the peak at
a length that was not among the points, and the KV cache of a generation token by token.

  growth_runs_test.py VRAMTRACK [--all]
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "estimate"))
from torch_python import use_torch_python  # noqa: E402

use_torch_python()
from llama_jobs import HEAD_DIM, HEADS, KV_HEADS, LAYERS, LENGTHS, VOCAB  # noqa: E402
from traced_jobs import Checks, ask, trace  # noqa: E402

VRAMTRACK = sys.argv[1]
KINDS = ("eager", "sdpa", "prefill") + (("checkpointed",) if "--all" in sys.argv else ())
NAMES = [f"{kind} {n}" for kind in KINDS for n in LENGTHS]
NAMES += [f"accumulate {n}" for n in (1, 2, 4, 8)] + ["generate", "prefill mha", "prefill mqa"]


def over(traces, kind, values, *options, variable="seq"):
    files = [traces[f"{kind} {value}"][0] for value in values]
    return ask(VRAMTRACK, "growth", *files, "--by", f"{variable}={','.join(map(str, values))}", *options)


def rows(table, part="categories"):
    return {row["name"]: row for row in table[part]}


def exponent_is(checks, table, row, wanted, what):
    found = rows(table).get(row, {}).get("exponent")
    value = found["value"] if found else None
    checks.that(value is not None and abs(value - wanted) <= 0.02 and found["low"] <= value <= found["high"],
                f"{what}: exponent of {row} is {value}, wanted {wanted}")


def check_exponents(checks, traces):
    eager, fused = over(traces, "eager", LENGTHS), over(traces, "sdpa", LENGTHS)
    exponent_is(checks, eager, "attention", 2, "eager attention")
    exponent_is(checks, fused, "attention", 1, "fused attention")
    exponent_is(checks, over(traces, "prefill", LENGTHS), "kv_cache", 1, "prefill")
    for table, what in ((eager, "eager"), (fused, "fused")):
        exponent_is(checks, table, "activations", 1, what)
        for row in ("parameters", "optimizer_state", "gradients"):
            exponent_is(checks, table, row, 0, what)
    facts = traces["eager 4096"][1]
    for row in ("parameters", "optimizer_state"):
        found = rows(eager)[row]["law"]["constant_bytes"]
        checks.that(abs(found - facts[row]) <= 0.001 * facts[row] + 512,
                    f"{row}: {found:.0f} bytes, PyTorch has {facts[row]}")
    for table in (eager, fused):
        lawless = [r["name"] for r in table["categories"]
                   if not r["law"]["explains"] and r["bytes"][-1] > 0.01 * table["allocated"]["bytes"][-1]]
        checks.that(not lawless, f"every row above 1 % of the peak follows a law; not: {lawless}")
        other = max(rows(table).get("other", {}).get("bytes", [0]))
        checks.that(other <= 0.01 * table["allocated"]["bytes"][-1], f"hardly anything is left unjudged: {other} bytes")
    ratio = eager["allocated"]["doubling_ratios"]
    checks.that(ratio == sorted(ratio) and ratio[-1] > 3.5, f"doublings approach four: {ratio}")
    crossings = {(c["overtaking"], c["overtaken"]): c["x"] for c in eager["crossings"]}
    x = crossings.get(("attention", "activations"))
    own = rows(eager)
    low = own["attention"]["bytes"][0] < own["activations"]["bytes"][0]
    checks.that(x is not None and low and LENGTHS[0] / 4 < x < LENGTHS[-1]
                if low else x is not None and x <= LENGTHS[0], f"attention overtakes activations at {x}")


def check_cache(checks, traces):
    table = over(traces, "prefill", LENGTHS)
    for length, found in zip(LENGTHS, rows(table)["kv_cache"]["bytes"]):
        true = traces[f"prefill {length}"][1]["kv"]
        checks.that(found == true, f"KV of {length} tokens: {found} bytes, its tensors have {true}")
    # What the shape alone says, for as many key/value heads as heads, some and one.
    for name, heads in (("prefill 1024", KV_HEADS), ("prefill mha", HEADS), ("prefill mqa", 1)):
        estimated = ask(VRAMTRACK, "estimate", "--layers", LAYERS, "--hidden", HEADS * HEAD_DIM, "--heads", HEADS,
                        "--kv-heads", heads, "--vocab", VOCAB, "--inference", "--batch", 2, "--seq", 1024)
        true = traces[name][1]["kv"]
        checks.that(estimated["categories"]["kv_cache"] == true, f"{name}: {true} bytes of KV, and so estimated")


def check_prediction(checks, traces):
    for kind in KINDS:
        whole = over(traces, kind, LENGTHS)
        true = whole["allocated"]["bytes"][3]
        capacity = (true + whole["outside_bytes"]) / 1024**3
        three = over(traces, kind, LENGTHS[:3], "--predict", LENGTHS[3], "--capacity", f"{capacity:.6f}")
        found = three["predictions"][0]["bytes"]
        checks.that(abs(found - true) <= 0.02 * true,
                    f"{kind}: three lengths predict {found:.0f} at {LENGTHS[3]}, it is {true} "
                    f"({100 * (found - true) / true:+.2f} %)")
        checks.that(three["largest_x_that_fits"] <= LENGTHS[3] * 1.001
                    and three["largest_x_at_most"] >= LENGTHS[3] * 0.98,
                    f"{kind}: a card of that size holds {three['largest_x_that_fits']:.0f} to "
                    f"{three['largest_x_at_most']:.0f} tokens, truly {LENGTHS[3]}")
        two = over(traces, kind, LENGTHS[:2], "--predict", LENGTHS[3], "--capacity", "80")
        checks.that(two["predictions"][0]["bytes"] is None and two["largest_x_that_fits"] is None
                    and two["notes"], f"{kind}: two lengths are not extrapolated, and it says so")


def check_accumulation(checks, traces):
    table = over(traces, "accumulate", (1, 2, 4, 8), variable="accumulation")
    one, *more = table["allocated"]["bytes"]
    gradients = rows(table)["gradients"]["bytes"][0]
    checks.that(len(set(more)) == 1, f"the peak is flat from accumulation 2 to 8: {more}")
    checks.that(0 <= more[0] - one <= gradients, "the first accumulation adds the gradients at most")
    exponent_is(checks, table, "activations", 0, "accumulation")


def check_generation(checks, traces):
    trace_file, facts = traces["generate"]
    table = ask(VRAMTRACK, "growth", trace_file)
    found = table["generation"]
    checks.that(found["kv_bytes_per_token"] == facts["per_token"] and found["steady"],
                f"a token takes {found['kv_bytes_per_token']} bytes of KV, by the formula {facts['per_token']}")
    checks.that(found["layers"] == LAYERS, f"layers {found['layers']}")
    checks.that(found["prompt_tokens"] == facts["prompt"], f"prompt of {found['prompt_tokens']} tokens")
    checks.that(found["prompt_tokens"] + found["decoded_tokens"] == facts["cached_tokens"],
                f"{found['decoded_tokens']} tokens were decoded")
    checks.that(found["kv_bytes_last"] == facts["per_token"] * facts["cached_tokens"],
                f"{found['kv_bytes_last']} bytes in the end")
    exponent_is(checks, table, "kv_cache", 1, "generation")
    exponent_is(checks, table, "parameters", 0, "generation")
    slope = rows(table)["kv_cache"]["law"]["linear_bytes"]
    checks.that(abs(slope / facts["per_token"] - 1) < 0.001, f"slope of the fit {slope:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "config.json")
        config.write_text('{"model_type": "llama", "num_hidden_layers": %d, "hidden_size": 256, "vocab_size": 1000, '
                          '"num_attention_heads": 8, "num_key_value_heads": %d, "intermediate_size": 704}'
                          % (LAYERS, KV_HEADS))
        tied = ask(VRAMTRACK, "growth", trace_file, "--config", config, "--batch", 2)["generation"]
        checks.that(tied["formula_bytes_per_token"] == 2 * LAYERS * KV_HEADS * HEAD_DIM * 2 * 2,
                    "the config's formula agrees")
    done = subprocess.run([VRAMTRACK, "growth", traces["sdpa 512"][0]], capture_output=True, text=True)
    checks.that(done.returncode == 2 and "--by" in done.stderr, "a training trace alone is refused with advice")


def check_text(checks, traces):
    files = [traces[f"eager {n}"][0] for n in LENGTHS]
    text = subprocess.run([VRAMTRACK, "growth", *files, "--by", "seq=" + ",".join(map(str, LENGTHS)), "--predict",
                           "8192", "--capacity", "80"], capture_output=True, text=True, check=True).stdout
    checks.that(all(len(line) <= 92 for line in text.splitlines()), "the text fits 92 columns")
    checks.that("simulated" in text.splitlines()[0] and "[extrapolated]" in text, "simulated, extrapolated: both said")
    checks.that("A attention" in text and any(line.rstrip().endswith("A") and "|" in line for line in text.splitlines()),
                "the plot shows attention as the highest at the right")


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="vramtrack-growth-") as folder:
        traces = trace(VRAMTRACK, HERE / "llama_jobs.py", folder, NAMES)
        for check in (check_exponents, check_cache, check_prediction, check_accumulation, check_generation,
                      check_text):
            check(checks, traces)
    return checks.done()


if __name__ == "__main__":
    sys.exit(main())
