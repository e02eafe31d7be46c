#!/usr/bin/env python3
"""The simulated GPU over process boundaries and environment variables, driven through ctypes.

Each case runs in a child that loads the stand-ins itself, so that variables and initialisation
are its own. Usage: process_test.py <folder of the stand-ins>
"""

import collections
import ctypes
import json
import os
import pathlib
import sys
import tempfile
import traceback
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p

FOLDER = pathlib.Path(sys.argv[1])
SUCCESS, INVALID_VALUE, NOT_INITIALIZED, NO_DEVICE, NOT_READY = 0, 1, 3, 100, 600
INVALID_CONTEXT = 201


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL(str(FOLDER / "libcuda.so.1"))

    def __getattr__(self, name):
        return getattr(self.cuda, name)

    def ok(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        assert result == SUCCESS, f"{name}: {result}"

    def start(self, device=0):
        self.ok("cuInit", 0)
        context = c_void_p()
        self.ok("cuDevicePrimaryCtxRetain", byref(context), device)
        self.ok("cuCtxSetCurrent", context)
        return context

    def alloc(self, size):
        pointer = c_uint64()
        self.ok("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer.value

    def device_count(self):
        count = c_int()
        self.ok("cuDeviceGetCount", byref(count))
        return count.value

    def memory(self):
        free, total = c_size_t(), c_size_t()
        self.ok("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value


def in_child(case):
    """Runs the case in a fresh child; its exit code is the verdict."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            case()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def a_child_of_fork_is_refused():
    driver = Driver()
    driver.start()
    pointer = driver.alloc(1 << 20)

    def child():
        count = c_int()
        assert driver.cuInit(0) == NOT_INITIALIZED
        assert driver.cuDeviceGetCount(byref(count)) == NOT_INITIALIZED
        assert driver.cuMemFree_v2(c_uint64(pointer)) == NOT_INITIALIZED
        assert driver.cuCtxSynchronize() == NOT_INITIALIZED

    assert in_child(child)
    driver.ok("cuMemFree_v2", c_uint64(pointer))


def a_child_may_use_what_its_parent_did_not():
    driver = Driver()
    assert in_child(driver.start)
    driver.start()


def memory_is_shared_with_another_process():
    read_end, write_end = os.pipe()
    done_read, done_write = os.pipe()

    class Handle(ctypes.Structure):
        _fields_ = [("reserved", ctypes.c_char * 64)]

    def exporter():
        driver = Driver()
        driver.start()
        pointer = driver.alloc(123456)
        handle = Handle()
        driver.ok("cuIpcGetMemHandle", byref(handle), c_uint64(pointer))
        opened = c_uint64()
        # Within one process there is nothing to import.
        assert driver.cuIpcOpenMemHandle_v2(byref(opened), handle, 1) == INVALID_CONTEXT
        os.write(write_end, bytes(handle))
        os.read(done_read, 1)

    pid = os.fork()
    if pid == 0:
        try:
            exporter()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os.write(write_end, b"x")
            os._exit(1)
    handle = Handle.from_buffer_copy(os.read(read_end, 64).ljust(64, b"\0"))
    driver = Driver()
    driver.start()
    before = driver.memory()
    first, second, base, size = c_uint64(), c_uint64(), c_uint64(), c_size_t()
    driver.ok("cuIpcOpenMemHandle_v2", byref(first), handle, 1)
    driver.ok("cuIpcOpenMemHandle_v2", byref(second), handle, 1)
    assert first.value == second.value
    driver.ok("cuMemGetAddressRange_v2", byref(base), byref(size), first)
    assert size.value == 123456
    assert driver.memory() == before, "an import adds nothing"
    driver.ok("cuIpcCloseMemHandle", first)
    driver.ok("cuIpcCloseMemHandle", first)
    assert driver.cuIpcCloseMemHandle(first) == INVALID_VALUE
    os.write(done_write, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def late_queries(seed):
    """How often each of 50 events was not ready, by asking until it is."""
    os.environ["SIMGPU_EVENTS"] = f"late:{seed}"
    driver = Driver()
    driver.start()
    event = c_void_p()
    driver.ok("cuEventCreate", byref(event), 2)
    waits = []
    for _ in range(50):
        driver.ok("cuEventRecord", event, None)
        asked = 0
        while driver.cuEventQuery(event) == NOT_READY:
            asked += 1
            assert asked < 100
        waits.append(asked)
    # Synchronising completes what was recorded, however late.
    driver.ok("cuEventRecord", event, None)
    driver.ok("cuEventSynchronize", event)
    assert driver.cuEventQuery(event) == SUCCESS
    driver.ok("cuEventRecord", event, None)
    driver.ok("cuStreamSynchronize", None)
    assert driver.cuEventQuery(event) == SUCCESS
    return waits


def late_events_are_late_and_repeatable():
    def waits_of(seed):
        read_end, write_end = os.pipe()
        assert in_child(lambda: os.write(write_end, json.dumps(late_queries(seed)).encode()))
        return json.loads(os.read(read_end, 65536))

    first = waits_of(7)
    assert sum(first) > 0 and len(set(first)) > 1
    assert first == waits_of(7)
    assert first != waits_of(8)


def an_event_that_passed_takes_the_earlier_ones_along():
    os.environ["SIMGPU_EVENTS"] = "late:3"
    driver = Driver()
    driver.start()
    events = [c_void_p() for _ in range(20)]
    for event in events:
        driver.ok("cuEventCreate", byref(event), 2)
        driver.ok("cuEventRecord", event, None)
    while driver.cuEventQuery(events[10]) == NOT_READY:
        pass
    assert all(driver.cuEventQuery(event) == SUCCESS for event in events[:11])


def the_log_adds_up():
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        os.environ.update(SIMGPU_LOG=str(log), SIMGPU="8GiB")
        driver = Driver()
        driver.start()
        pointers = [driver.alloc(size) for size in (1000, 2 << 20, 3333333)]
        assert driver.cuMemAlloc_v2(byref(c_uint64()), c_size_t(9 << 30)) == 2
        asynchronous = c_uint64()
        driver.ok("cuMemAllocAsync", byref(asynchronous), c_size_t(5 << 20), None)
        driver.ok("cuMemFree_v2", c_uint64(pointers[1]))
        free, total = driver.memory()
        totals = collections.Counter()
        used = 0
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            if not entry.get("refused"):
                totals[entry["kind"]] += entry["size"]
            assert totals[entry["kind"]] == entry["kind_total"]
            used = sum(size for kind, size in totals.items() if kind != "pool_used")
            assert used == entry["used"]
        assert used == total - free
        assert totals["device"] == 1000 + 3333333
        assert sum(json.loads(line).get("refused", False) for line in log.open()) == 1


def assumptions_are_written_at_exit():
    import subprocess

    program = (
        "import ctypes, sys\n"
        "cuda = ctypes.CDLL(sys.argv[1])\n"
        "context, pointer = ctypes.c_void_p(), ctypes.c_uint64()\n"
        "cuda.cuInit(0)\n"
        "cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
        "cuda.cuCtxSetCurrent(context)\n"
        "cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(100))\n"
        "back = ctypes.create_string_buffer(10)\n"
        "if len(sys.argv) > 2: cuda.cuMemcpyDtoH_v2(back, pointer, ctypes.c_size_t(10))\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "assumptions"
        os.environ["SIMGPU_ASSUMPTIONS"] = str(path)
        library = str(FOLDER / "libcuda.so.1")
        subprocess.run([sys.executable, "-c", program, library], check=True)
        assert not path.exists(), "nothing was assumed"
        subprocess.run([sys.executable, "-c", program, library, "read"], check=True)
        (entry,) = [json.loads(line) for line in path.read_text().splitlines()]
        assert list(entry["assumed"].values()) == [10]


def names_choose_devices():
    class Description(ctypes.Structure):
        _fields_ = [("model", ctypes.c_char * 32), ("name", ctypes.c_char * 96), ("total", c_uint64),
                    ("ordinal", c_int), ("major", c_int), ("minor", c_int)]

    def describe(text):
        os.environ["SIMGPU"] = text
        driver = Driver()
        found = []
        for index in range(driver.simgpu_describe_count()):
            buffer = ctypes.create_string_buffer(512)
            assert driver.simgpu_describe(index, buffer) == 0
            description = Description.from_buffer(buffer)
            found.append((description.model.decode(), description.major * 10 + description.minor,
                          description.total))
        return found

    # Compute capabilities: NVIDIA's list of GPUs.
    expected = {"a100-40g": 80, "h100-80g": 90, "h200": 90, "a6000-48g": 86, "rtx4090": 89,
                "v100-16g": 70}
    for name, capability in expected.items():
        assert [(model, cc) for model, cc, _ in describe(name)] == [(name, capability)], name
    assert [model for model, _, _ in describe("2x a100-40g")] == ["a100-40g"] * 2
    assert [model for model, _, _ in describe("h200, rtx4090")] == ["h200", "rtx4090"]
    assert [total for _, _, total in describe("8GiB")] == [8 << 30]
    assert [total for _, _, total in describe("24gb")] == [24 * 10**9]
    assert describe("A6000") == describe("a6000-48g")
    assert [model for model, _, _ in describe("")] == ["h100-80g"]
    for nonsense in ("gtx9999", "0x h200", "65x h200", "-8GiB", "h200,,h200", "8", "a100"):
        assert describe(nonsense) == [], nonsense
    os.environ["SIMGPU"] = "gtx9999"
    assert Driver().cuInit(0) == NO_DEVICE


def visible_devices_are_numbered_anew():
    def count(visible):
        read_end, write_end = os.pipe()

        def child():
            os.environ.update(SIMGPU="h100-80g,h200,a100-40g", CUDA_VISIBLE_DEVICES=visible)
            driver = Driver()
            result = driver.cuInit(0)
            names = []
            if result == SUCCESS:
                for i in range(driver.device_count()):
                    name = ctypes.create_string_buffer(100)
                    driver.ok("cuDeviceGetName", name, 100, i)
                    names.append(name.value.decode())
            os.write(write_end, json.dumps([result, names]).encode())

        assert in_child(child)
        return json.loads(os.read(read_end, 65536))

    h200, a100 = "NVIDIA H200", "NVIDIA A100-SXM4-40GB"
    assert count("1") == [SUCCESS, [h200]]
    assert count("2,1") == [SUCCESS, [a100, h200]]
    assert count("1,9,2") == [SUCCESS, [h200]]
    assert count("") == [NO_DEVICE, []]
    assert count("-1") == [NO_DEVICE, []]
    assert count("GPU-53494d47-0000-0000-0000-000000000002") == [SUCCESS, [a100]]


def the_driver_version_can_be_chosen():
    for text, expected in (("12.8", 12080), ("13000", 13000)):
        os.environ["SIMGPU_DRIVER_VERSION"] = text
        version = c_int()
        Driver().ok("cuDriverGetVersion", byref(version))
        assert version.value == expected


def nvml_agrees_and_initialises_nothing():
    os.environ["SIMGPU"] = "2x 8GiB"

    class Memory(ctypes.Structure):
        _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]

    class Process(ctypes.Structure):
        _fields_ = [("pid", c_uint), ("used", c_ulonglong), ("gpu", c_uint), ("compute", c_uint)]

    nvml = ctypes.CDLL(str(FOLDER / "libnvidia-ml.so.1"))
    count = c_uint()
    assert nvml.nvmlDeviceGetCount_v2(byref(count)) == 1, "uninitialised"
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetCount_v2(byref(count)) == 0 and count.value == 2
    device = c_void_p()
    assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0000:02:00.0", byref(device)) == 0
    memory, infos, room = Memory(), (Process * 4)(), c_uint(4)
    assert nvml.nvmlDeviceGetMemoryInfo(device, byref(memory)) == 0
    assert (memory.total, memory.used) == (8 << 30, 0)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(room), infos) == 0
    assert room.value == 0

    driver = Driver()
    assert driver.cuCtxSynchronize() == NOT_INITIALIZED, "NVML left CUDA alone"
    driver.start(1)
    driver.alloc(12345678)
    free, total = driver.memory()
    assert nvml.nvmlDeviceGetMemoryInfo(device, byref(memory)) == 0
    assert (memory.total, memory.free) == (total, free)
    room = c_uint(0)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(room), None) == 7
    room = c_uint(4)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(room), infos) == 0
    assert (room.value, infos[0].pid, infos[0].used) == (1, os.getpid(), total - free)
    uuid, own = ctypes.create_string_buffer(96), (ctypes.c_ubyte * 16)()
    assert nvml.nvmlDeviceGetUUID(device, uuid, 96) == 0
    driver.ok("cuDeviceGetUuid_v2", own, 1)
    assert uuid.value.decode().replace("-", "")[3:] == bytes(own).hex()
    # What PyTorch looks up must resolve; what a card may lack is not supported.
    for name in ("nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                 "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetPowerUsage"):
        assert getattr(nvml, name)(device, 0, None) == 3, name
    nvml.nvmlErrorString.restype = c_char_p
    assert nvml.nvmlErrorString(3) == b"Not Supported"
    assert nvml.nvmlShutdown() == 0


def exports_are_those_of_the_table():
    """The table was made from NVIDIA's stub library; every name must be there, and no stranger."""
    import re
    import subprocess

    source = pathlib.Path(__file__).resolve().parents[2] / "simgpu" / "driver" / "entry_points.def"
    wanted = set(re.findall(r"SIMGPU_ENTRY\((\w+),", source.read_text()))
    found = subprocess.run(["nm", "-D", "--defined-only", FOLDER / "libcuda.so.1"], check=True,
                           capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in found.splitlines()}
    assert wanted - exported == set()
    assert all(name.startswith("simgpu_") for name in exported - wanted), exported - wanted
    needed = subprocess.run(["readelf", "-d", FOLDER / "libcuda.so.1"], check=True,
                            capture_output=True, text=True).stdout
    assert "libstdc++" not in needed and "libgcc_s" not in needed


def main():
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    cases = [
        a_child_of_fork_is_refused, a_child_may_use_what_its_parent_did_not,
        memory_is_shared_with_another_process, late_events_are_late_and_repeatable,
        an_event_that_passed_takes_the_earlier_ones_along, the_log_adds_up,
        assumptions_are_written_at_exit, names_choose_devices,
        visible_devices_are_numbered_anew, the_driver_version_can_be_chosen,
        nvml_agrees_and_initialises_nothing, exports_are_those_of_the_table]
    failed = []
    for case in cases:
        passed = in_child(case)
        print(("ok      " if passed else "FAILED  ") + case.__name__.replace("_", " "))
        if not passed:
            failed.append(case)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
