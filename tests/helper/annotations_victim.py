"""The Python module `vramtrack`, as a program uses it. Nothing is installed."""
import vramtrack

vramtrack.mark("begin")
with vramtrack.scope("outer"):
    vramtrack.push("inner")
    vramtrack.pop()
vramtrack.step(7)
vramtrack.label(0x1000, 512, "kv_cache:layer 0")
print("active", vramtrack.active())
