"""Stages of tools/calibrate_torch.py read a driver and NCCL logs that stand in for those of a node with GPUs."""
import ctypes
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from torch_stages import nvml, ranks  # noqa: E402

# CUDA's order, which CUDA_VISIBLE_DEVICES chose, is not the bus's, which NVML counts by.
UUIDS = [bytes([7] * 16), bytes(range(16))]
WATTS = {"GPU-07070707-0707-0707-0707-070707070707": 111, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f": 222}
THERMAL_SLOWDOWN = 0x20


class Cuda:
    def cuInit(self, flags):
        return 0

    def cuDeviceGet(self, device, index):
        device._obj.value = index
        return 0

    def cuDeviceGetUuid(self, uuid, device):
        ctypes.memmove(uuid._obj, UUIDS[device.value], 16)
        return 0


class Nvml:
    def __init__(self, has_fields):
        self.watts, self.has_fields = 0, has_fields

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):
        self.watts = WATTS[uuid.decode()]
        return 0

    def nvmlDeviceGetFieldValues(self, handle, count, field):
        field._obj.status, field._obj.value = (0, 1000 * self.watts + 500) if self.has_fields else (3, 0)
        return 0

    def __getattr__(self, name):
        values = {"nvmlDeviceGetPowerUsage": 1000 * self.watts, "nvmlDeviceGetCurrentClocksThrottleReasons": THERMAL_SLOWDOWN,
                  "nvmlDeviceGetClockInfo": 1755, "nvmlDeviceGetTemperature": 60}
        if name not in values:
            raise AttributeError(name)

        def read(*arguments):
            arguments[-1]._obj.value = values[name]
            return 0
        return read


def card(index, has_fields=True):
    libraries = {"libcuda.so.1": Cuda(), "libnvidia-ml.so.1": Nvml(has_fields)}
    with mock.patch.object(ctypes, "CDLL", libraries.__getitem__):
        return nvml.Card(index)


class Driver(unittest.TestCase):
    def test_is_asked_for_the_gpu_that_cuda_has_under_the_number(self):
        self.assertEqual(card(1).state(), ["1755", "1755", "60", "222.5", str(THERMAL_SLOWDOWN)])
        self.assertEqual(card(0).state()[3], "111.5")

    def test_of_an_older_release_says_its_mean_power(self):
        self.assertEqual(card(1, has_fields=False).state()[3], "222")

    def test_that_lacks_a_call_is_named(self):
        with self.assertRaisesRegex(nvml.Unreadable, "the driver's NVML has no nvmlSystemGetDriverVersion"):
            card(0).driver()


class Communicators(unittest.TestCase):
    CHANNELS = "node:1:1 [0] NCCL INFO 24 coll channels, 24 collnet channels, {} nvls channels, 32 p2p channels\n"

    def reduces_in_switch(self, *channels):
        with tempfile.TemporaryDirectory() as folder:
            named = os.path.join(folder, "nccl.%h.%p.log")
            log = named.replace("%h", os.uname().nodename).replace("%p", str(os.getpid()))
            pathlib.Path(log).write_text("".join(self.CHANNELS.format(each) for each in channels))
            with mock.patch.dict(os.environ, NCCL_DEBUG_FILE=named):
                return ranks.reduces_in_switch(types.SimpleNamespace())

    def test_reduce_in_the_switch_where_the_latest_has_such_channels(self):
        self.assertTrue(self.reduces_in_switch(16))
        self.assertFalse(self.reduces_in_switch(0))
        self.assertFalse(self.reduces_in_switch(16, 0))
        self.assertFalse(self.reduces_in_switch())

    def test_of_all_nodes_come_first_then_of_a_node(self):
        self.assertEqual(ranks.group_sizes(16, 8), [16, 8, 2, 4])
        self.assertEqual(ranks.group_sizes(8, 8), [8, 2, 4])
        self.assertEqual(ranks.group_sizes(12, 6), [12, 6, 2, 4])


if __name__ == "__main__":
    unittest.main()
