"""A training job that knows which module made each of its blocks: hooks on all named modules look at the allocator
whenever a forward begins or ends, and what appeared in between belongs to the module whose forward ran.

usage: module_witness.py OUT.json
Nothing here reads stacks or the tracer. Of the last step, at the end of its forward pass.
"""
import importlib.util
import json
import pathlib
import sys
import types

import torch
import vramtrack

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples" / "train_gpt.py"


def live():
    return {block["address"]: block["size"] for segment in torch.cuda.memory_snapshot()
            for block in segment["blocks"] if block["state"] == "active_allocated"}


class Watch:
    def __init__(self, model):
        self.running, self.made, self.before = [], {}, {}
        self.on = False
        for name, module in model.named_modules():
            if name:  # the root has no name of its own
                module.register_forward_pre_hook(lambda *_, name=name: self.turn(name))
                module.register_forward_hook(lambda *_: self.turn(None))

    def turn(self, name):
        if not self.on:
            return
        self.look()
        if name is None:
            self.running.pop()
        else:
            self.running.append(name)

    def look(self):
        now = live()
        if self.running:
            for address, size in now.items():
                if self.before.get(address) != size:
                    self.made[address] = self.running[-1]
        for address in set(self.made) - set(now):
            del self.made[address]
        self.before = now


def main():
    spec = importlib.util.spec_from_file_location("train_gpt", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    sizes = dict(layers=3, hidden=256, heads=4, vocab=4096, seq=128, batch=4, attention="eager", checkpoint=False)
    model = example.GPT(types.SimpleNamespace(**sizes)).to("cuda")
    watch = Watch(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(6):
        watch.on = step == 5
        ids = torch.randint(4096, (4, 129), device="cuda")
        logits = model(ids[:, :-1])
        if watch.on:
            watch.look()
            vramtrack.mark("forward")
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    owners = {p.untyped_storage().data_ptr(): name.rpartition(".")[0] for name, p in model.named_parameters()}
    for parameter, state in optimizer.state.items():
        for value in state.values():
            if value.is_cuda:
                owners[value.untyped_storage().data_ptr()] = owners[parameter.untyped_storage().data_ptr()]
    pathlib.Path(sys.argv[1]).write_text(json.dumps({"made": watch.made, "owners": owners, "live": watch.before}))


main()
