"""Stages in their order, and the sizes that each mode measures."""

import collections

HEADER = ("group,name,parameters,flops,bytes,median_us,p10_us,p90_us,min_us,repetitions,launches_per_repetition,"
          "sm_clock_mhz,memory_clock_mhz,temperature_c,power_w,throttle_reasons")

# hidden, feed forward, heads, key-value heads, head size, gated; tensor parallel, micro batch, sequence
LAYERS = {"gpt-6.2b": (4096, 16384, 32, 32, 128, False, 1, 3, 1024),
          "llama3-70b": (8192, 28672, 64, 8, 128, True, 8, 1, 8192),
          "tiny": (128, 512, 2, 2, 64, False, 1, 1, 64)}

def parameters_of(name, shape, rms_norm=0):
    """All that the work of a timed layer follows from, for its row."""
    names = ("hidden", "feed_forward", "heads", "kv_heads", "head_dim", "gated", "tensor_parallel", "micro_batch", "sequence")
    own = {key: int(value) for key, value in zip(names, shape)}
    first = {key: own.pop(key) for key in names[6:]}
    return dict(layer=name, **first, **own, rms_norm=rms_norm, dropout=0)


MODES = {
    "tiny": dict(layers=["tiny"], tokens=[64, 128], sides=[1024], lengths=[64, 128], kernels=[256], burn=0.05,
                 copies=[1 << 16, 1 << 18, 1 << 20], messages=[1 << n for n in range(10, 21, 2)], sample=2e-3,
                 repeat=3, launches=3),
    "quick": dict(layers=["gpt-6.2b", "llama3-70b"], tokens=[2048, 8192], sides=[1024, 2048, 4096, 8192],
                  lengths=[2048, 4096, 8192], kernels=[4096, 65536], burn=3.0,
                  copies=[1 << n for n in range(20, 29, 2)], messages=[1 << n for n in range(16, 29, 2)], sample=5e-3,
                  repeat=9, launches=20),
    "full": dict(layers=["gpt-6.2b", "llama3-70b"], tokens=[1024, 2048, 4096, 8192],
                 sides=[512, 1024, 2048, 3072, 4096, 6144, 8192], lengths=[1024, 2048, 4096, 8192, 16384],
                 kernels=[4096, 16384, 65536], burn=10.0, copies=[1 << n for n in range(16, 29)],
                 messages=[1 << n for n in range(10, 30)], sample=10e-3, repeat=25, launches=20),
}

# A stage: its name, its file, whether all ranks take part, seconds after which it is ended (tiny: a sixth), and whether it
# runs unless asked otherwise. The others' rows set no number of the simulator: they run where --only names them.
Stage = collections.namedtuple("Stage", "name file all_ranks limit usual")
STAGES = [Stage("facts", "compute", False, 60, True), Stage("kernels", "compute", False, 120, True),
          Stage("attention", "compute", False, 300, True), Stage("copies", "copies", False, 120, True),
          Stage("layers", "compute", False, 240, True), Stage("matmuls", "compute", False, 600, True),
          Stage("fp8", "compute", False, 240, True), Stage("interference", "copies", False, 120, True),
          Stage("host", "host", False, 240, True), Stage("power", "power", False, 300, False),
          Stage("grouped", "grouped", False, 240, False),
          Stage("spread", "spread", True, 120, True), Stage("copies_together", "copies", True, 180, True),
          Stage("collectives", "ranks", True, 420, True)]
