"""touch_job.py FOLDER JOB...: PyTorch jobs, each in a process of its own, that say which operator made each large tensor
and which was the last to be given it. The witness is PyTorch's dispatcher: what each operator gets and gives, by data
pointer. Writes FOLDER/JOB.json: {"pid", "tensors": [{"address", "bytes", "label", "made_by", "last_used_by"}], "log_sum_exps"}, of the
tensors that are alive at the mark `look`.
"""
import json
import os
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import vramtrack  # noqa: E402

MIB = 1 << 20
NO_WORK = {"view", "_unsafe_view", "t", "transpose", "detach", "empty", "empty_like", "empty_strided", "alias", "slice",
           "expand", "unsqueeze", "squeeze", "permute", "select", "as_strided", "split", "unbind", "new_empty",
           "new_empty_strided", "_reshape_alias", "is_same_size", "lift_fresh", "record_stream", "_to_copy_meta"}


def storages(values):
    """Address and size of the memory of each tensor on the device among `values`."""
    found = {}
    for value in tree_flatten(values)[0]:
        if isinstance(value, torch.Tensor) and value.is_cuda and value.numel():
            storage = value.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
    return found


class Witness(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.made, self.used, self.sizes = {}, {}, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[-1]
        before = storages((args, kwargs))
        result = function(*args, **(kwargs or {}))
        after = storages(result)
        if name in NO_WORK:
            for address in after.keys() - before.keys():
                self.made[address] = self.used[address] = None  # not written yet
                self.sizes[address] = after[address]
            return result
        for address in {**before, **after}:
            fresh = address in after and address not in before
            if fresh or self.made.get(address) is None:
                self.made[address] = name
            self.used[address] = name
            self.sizes[address] = {**before, **after}[address]
        return result

    def write(self, path, live, log_sum_exps=()):
        """Of the tensors in `live`: name -> tensor. Log-sum-exps are told by their addresses."""
        tensors = []
        for label, tensor in live.items():
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            if storage.nbytes() >= MIB and self.made.get(address):
                tensors.append({"address": address, "bytes": storage.nbytes(), "label": label,
                                "made_by": self.made[address], "last_used_by": self.used[address]})
        with open(path, "w") as file:
            json.dump({"pid": os.getpid(), "tensors": tensors,
                       "log_sum_exps": [t.untyped_storage().data_ptr() for t in log_sum_exps]}, file)


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2)).softmax(-1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))


class Flash(Attention):
    log_sum_exp = None  # what backward keeps, where a backward follows

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # not cuDNN's, which newer cards prefer
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        self.log_sum_exp = getattr(y.grad_fn, "_saved_logsumexp", None)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


def network(attention, width=512, layers=3):
    blocks = []
    for _ in range(layers):
        blocks += [torch.nn.LayerNorm(width), attention(width, 8), torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                   torch.nn.Linear(4 * width, width), torch.nn.Dropout(0.1)]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(width, 2000)).cuda()


def named(model, optimizer, extra):
    live = {f"parameter {n}": p for n, p in model.named_parameters()}
    live.update({f"gradient {n}": p.grad for n, p in model.named_parameters() if p.grad is not None})
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter, {}) if optimizer else {}
        live.update({f"{k} {name}": v for k, v in state.items() if torch.is_tensor(v) and v.is_cuda})
    live.update(extra)
    return live


def train(witness, path, attention=Attention, dtype=torch.float32, **adam):
    kept = {}

    def keep(module, inputs, output):
        kept[f"output {len(kept)} of {type(module).__name__}"] = output

    model = network(attention).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), **adam)
    tokens = torch.randn(4, 512, 512, device="cuda").to(dtype)
    wanted = torch.randint(0, 2000, (4 * 512,), device="cuda")
    for step in range(3):
        if step == 2:
            for module in model:
                module.register_forward_hook(keep)
        loss = torch.nn.functional.cross_entropy(model(tokens).view(-1, 2000).float(), wanted)
        loss.backward()
        optimizer.step()
        if step != 2:
            optimizer.zero_grad()
    torch.cuda.synchronize()
    vramtrack.mark("look")
    witness.write(path, named(model, optimizer, {"tokens": tokens, **kept}),
                  [m.log_sum_exp for m in model if isinstance(m, Flash)])


def generate(witness, path):
    model = network(Flash).half().eval()
    cache = [torch.zeros(2, 8, 2048, 64, device="cuda", dtype=torch.half) for _ in range(6)]
    prompt = torch.randn(2, 512, 512, device="cuda").half()
    with torch.no_grad():
        outputs = model(prompt)
        for i, one in enumerate(cache):
            one[:, :, :512] = outputs[:, :, :512].reshape(2, 8, 64, 512).transpose(-1, -2)
        grown = [torch.cat([c[:, :, :512], c[:, :, :512]], dim=2) for c in cache]
        probabilities = outputs.float().softmax(-1)
    torch.cuda.synchronize()
    vramtrack.mark("look")
    live = {f"cache {i}": c for i, c in enumerate(cache)}
    live.update({f"grown {i}": c for i, c in enumerate(grown)})
    witness.write(path, named(model, None, {"outputs": outputs, "probabilities": probabilities, **live}))


JOBS = {
    "loop": lambda w, p: train(w, p, foreach=False, fused=False),
    "foreach": lambda w, p: train(w, p, foreach=True),
    "fused": lambda w, p: train(w, p, fused=True),
    "flash": lambda w, p: train(w, p, attention=Flash, dtype=torch.bfloat16, foreach=True),
    "generate": generate,
}

if __name__ == "__main__":
    for name in sys.argv[2:]:
        child = os.fork()
        if child == 0:
            witness = Witness()
            with witness:
                JOBS[name](witness, os.path.join(sys.argv[1], name + ".json"))
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(1)
