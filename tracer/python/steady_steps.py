# The end of a program whose steps no longer differ, where one was asked for (--stop-after-steps). Runs
# before helper.py and in the same globals; the rules at the head of that file hold here too.
import _thread
import os
import sys

SIMULATED = os.environ.get("VRAMTRACK_SIMULATED", "0") not in ("", "0", "off", "no", "none", "false")

metadata = _native["metadata"]


class SteadySteps:
    """Ends the program, as sys.exit() would, once `wanted` steps in a row moved memory in the same way.

    A step is compared with the one before by all that the allocator and the driver count, requested
    bytes included: a list that grows by a loss, a cache that grows inside its last block, and a new
    high-water mark are differences. A program whose steps nobody knows runs to its end.
    """

    def __init__(self, wanted):
        self.wanted = wanted
        self.steps = 0
        self.alike = 0  # steps in a row, the latest included
        self.totals = None  # bytes and blocks ever allocated, at the end of the latest step
        self.latest = None  # what the latest step did

    def ended(self, torch):
        """At the end of a step, on the thread that ends it."""
        if not self.wanted or torch is None or not torch.cuda.is_initialized():
            return
        self.steps += 1
        threads = sys.modules.get("threading")
        if threads is None or threads.main_thread().ident != _thread.get_ident():
            return  # elsewhere SystemExit would end a thread, not the program
        if torch.cuda.is_current_stream_capturing():
            return
        standing, totals = self.measure(torch)
        before, self.totals = self.totals, totals
        if before is None or len(before) != len(totals):
            self.latest = None
            return
        step = (standing, [now - then for now, then in zip(totals, before)])
        self.alike = self.alike + 1 if step == self.latest else 1
        self.latest = step
        if self.alike >= self.wanted:
            self.stop()

    def measure(self, torch):
        standing, totals = [], []
        for device in range(torch.cuda.device_count()):
            stats = torch.cuda.memory_stats_as_nested_dict(device)
            if not stats or not stats["reserved_bytes"]["all"]["peak"]:
                continue  # not used; to ask the driver would make a context there
            for name in ("allocated_bytes", "reserved_bytes", "active_bytes"):
                standing += [stats[name]["all"]["current"], stats[name]["all"]["peak"]]
            requested = stats.get("requested_bytes", stats["allocated_bytes"])["all"]
            standing.append(requested["current"])
            if SIMULATED:  # on a real card others come and go
                standing.append(torch.cuda.mem_get_info(device)[0])
            totals += [requested["allocated"], stats["allocated_bytes"]["all"]["allocated"],
                       stats["allocation"]["all"]["allocated"]]
        return standing, totals

    def stop(self):
        wanted, self.wanted = self.wanted, 0  # a program that goes on all the same goes on to its end
        alike = "%d steady steps" % wanted if wanted > 1 else "a steady step"
        metadata("stopped_after_steady_steps", "%d of %d" % (wanted, self.steps))
        try:
            sys.stderr.write(
                "vramtrack: the program was ended after %s (%d in all): memory no longer changes from step to "
                "step. What would follow was not run; --stop-after-steps 0 runs to the end\n" % (alike, self.steps))
        except Exception:
            pass
        raise SystemExit(0)


def steps_wanted():
    text = os.environ.get("VRAMTRACK_STOP_AFTER_STEPS", "")
    return int(text) if text.isdecimal() else 0
