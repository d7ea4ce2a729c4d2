"""The state of a GPU as its driver says it, through NVML's C interface. The GPU is found by its UUID: NVML counts all
GPUs of a machine in the order of their bus, PyTorch those that CUDA_VISIBLE_DEVICES leaves, in its order."""
import ctypes

SM, MEMORY, GPU_TEMPERATURE = 1, 2, 0
INSTANT_POWER = 186  # of the moment; nvmlDeviceGetPowerUsage is a mean over a second on newer GPUs


class Field(ctypes.Structure):  # nvmlFieldValue_t
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("timestamp", ctypes.c_longlong),
                ("latency_us", ctypes.c_longlong), ("type", ctypes.c_uint), ("status", ctypes.c_int),
                ("value", ctypes.c_ulonglong)]


class Unreadable(Exception):
    """NVML refuses, or is not there."""


def checked(status, call):
    if status != 0:
        raise Unreadable(f"{call} ended with status {status}")


def uuid_of(index):
    """UUID of PyTorch's GPU of that number in this process."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Unreadable(str(error))
    device, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    checked(cuda.cuInit(0), "cuInit")
    checked(cuda.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
    checked(cuda.cuDeviceGetUuid(ctypes.byref(uuid), device), "cuDeviceGetUuid")
    text = bytes(uuid).hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Card:
    """One GPU, to read."""

    def __init__(self, index):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise Unreadable(str(error))
        self.handle = ctypes.c_void_p()
        self.call("nvmlInit_v2")
        self.call("nvmlDeviceGetHandleByUUID", uuid_of(index).encode(), ctypes.byref(self.handle))

    def call(self, name, *arguments):
        try:
            checked(getattr(self.library, name)(*arguments), name)
        except AttributeError:
            raise Unreadable(f"the driver's NVML has no {name}")

    def number(self, name, *which, kind=ctypes.c_uint):
        value = kind()
        self.call(name, self.handle, *which, ctypes.byref(value))
        return value.value

    def power_w(self):
        field = Field(id=INSTANT_POWER)
        try:
            self.call("nvmlDeviceGetFieldValues", self.handle, 1, ctypes.byref(field))
        except Unreadable:
            field.status = 1
        if field.status == 0 and field.value & 0xffffffff:
            return (field.value & 0xffffffff) * 1e-3
        return self.number("nvmlDeviceGetPowerUsage") * 1e-3

    def state(self):
        """Clocks in MHz, temperature, watts, and NVML's bits of why clocks are held down: cells of a row."""
        reasons = self.number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        return [str(self.number("nvmlDeviceGetClockInfo", SM)), str(self.number("nvmlDeviceGetClockInfo", MEMORY)),
                str(self.number("nvmlDeviceGetTemperature", GPU_TEMPERATURE)), f"{self.power_w():.6g}", str(reasons)]

    def driver(self):
        text = ctypes.create_string_buffer(96)
        self.call("nvmlSystemGetDriverVersion", text, len(text))
        return text.value.decode()

    def power_limit_w(self):
        return f"{self.number('nvmlDeviceGetEnforcedPowerLimit') * 1e-3:.6g}"
