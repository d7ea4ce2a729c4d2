"""Made by tools/make_python_types from sim/report/metrics/table.h: do not edit."""

from __future__ import annotations

from typing import Any, Optional


class RunMetrics:
    """The numbers of a simulation. A number that does not apply is None."""

    def __getitem__(self, key: str) -> Any:
        raise NotImplementedError

    @property
    def gpus(self) -> int:
        """GPUs, count: world size: tensor x context x pipeline x data-parallel ranks."""
        value: int = self["gpus"]
        return value

    @property
    def iteration_seconds(self) -> float:
        """Iteration time, s: period of an iteration in steady state; the mean of an ensemble."""
        value: float = self["iteration_seconds"]
        return value

    @property
    def makespan_seconds(self) -> float:
        """Makespan, steady, s: first pass start to last pass end of one iteration in steady state."""
        value: float = self["makespan_seconds"]
        return value

    @property
    def makespan_from_rest_seconds(self) -> float:
        """Makespan from rest, s: first pass start to last pass end of an iteration before which all devices are idle."""
        value: float = self["makespan_from_rest_seconds"]
        return value

    @property
    def cost_seconds(self) -> float:
        """Cost, s: largest span of a device: its first pass start to its last pass end."""
        value: float = self["cost_seconds"]
        return value

    @property
    def bubble_rate(self) -> float:
        """Bubble rate, share: (cost - work) / cost of the device with the largest span."""
        value: float = self["bubble_rate"]
        return value

    @property
    def bubble_rate_busiest(self) -> float:
        """Bubble rate, of the busiest device, share: (cost - most work) / cost: the share that a better order could save at most."""
        value: float = self["bubble_rate_busiest"]
        return value

    @property
    def bubble_rate_makespan(self) -> float:
        """Bubble rate, of the makespan, share: mean over devices of (makespan - work) / makespan."""
        value: float = self["bubble_rate_makespan"]
        return value

    @property
    def bubble_over_ideal(self) -> float:
        """Bubble over ideal time, share: sum of idle / sum of busy; idle = period - busy, the optimizer step is busy."""
        value: float = self["bubble_over_ideal"]
        return value

    @property
    def samples_per_second(self) -> Optional[float]:
        """Samples per second, 1/s: samples of all replicas / iteration."""
        value: Optional[float] = self["samples_per_second"]
        return value

    @property
    def samples_per_second_per_gpu(self) -> Optional[float]:
        """Samples per second and GPU, 1/s: samples_per_second / gpus."""
        value: Optional[float] = self["samples_per_second_per_gpu"]
        return value

    @property
    def tokens_per_second_per_gpu(self) -> Optional[float]:
        """Tokens per second and GPU, 1/s: seq_length x samples_per_second_per_gpu."""
        value: Optional[float] = self["tokens_per_second_per_gpu"]
        return value

    @property
    def microbatches_per_second(self) -> float:
        """Throughput, 1/s: microbatches of one pipeline / iteration."""
        value: float = self["microbatches_per_second"]
        return value

    @property
    def microbatches_per_second_per_gpu(self) -> float:
        """Microbatches per second and GPU, 1/s: microbatches of all replicas / iteration / gpus."""
        value: float = self["microbatches_per_second_per_gpu"]
        return value

    @property
    def model_tflops_per_gpu(self) -> Optional[float]:
        """Model TFLOP/s per GPU, TFLOP/s: the model's FLOPs, all of attention counted / iteration / gpus."""
        value: Optional[float] = self["model_tflops_per_gpu"]
        return value

    @property
    def mfu(self) -> Optional[float]:
        """MFU, share: model_tflops_per_gpu / the GPU's peak."""
        value: Optional[float] = self["mfu"]
        return value

    @property
    def model_tflops_per_gpu_causal(self) -> Optional[float]:
        """Model TFLOP/s per GPU, causal, TFLOP/s: model_tflops_per_gpu with the pairs that a causal model attends to."""
        value: Optional[float] = self["model_tflops_per_gpu_causal"]
        return value

    @property
    def mfu_causal(self) -> Optional[float]:
        """MFU, causal, share: model_tflops_per_gpu_causal / the GPU's peak."""
        value: Optional[float] = self["mfu_causal"]
        return value

    @property
    def hfu(self) -> Optional[float]:
        """HFU, share: mfu with forwards that are run again; unknown under selective recomputation."""
        value: Optional[float] = self["hfu"]
        return value

    @property
    def peak_activation_bytes(self) -> Optional[float]:
        """Peak activation memory, B: most bytes of activations on a device at a time."""
        value: Optional[float] = self["peak_activation_bytes"]
        return value

    @property
    def peak_memory_bytes(self) -> Optional[float]:
        """Peak memory, B: most bytes on a device at a time: activations, weights, gradients, optimizer state, buffers, overhead."""
        value: Optional[float] = self["peak_memory_bytes"]
        return value

    @property
    def capacity_bytes(self) -> Optional[float]:
        """Memory of a GPU, B: memory of a GPU less the margin."""
        value: Optional[float] = self["capacity_bytes"]
        return value

    @property
    def peak_memory_low_bytes(self) -> Optional[float]:
        """Low end of the peak's band, B: low end of the band of peak_memory_bytes."""
        value: Optional[float] = self["peak_memory_low_bytes"]
        return value

    @property
    def peak_memory_high_bytes(self) -> Optional[float]:
        """High end of the peak's band, B: high end of the band of peak_memory_bytes."""
        value: Optional[float] = self["peak_memory_high_bytes"]
        return value

    @property
    def fits(self) -> Optional[str]:
        """Fits, fit: yes, no, or tight where capacity_bytes lies inside the band of peak_memory_bytes."""
        value: Optional[str] = self["fits"]
        return value

    @property
    def iteration_stddev_seconds(self) -> Optional[float]:
        """Standard deviation of iterations, s: of the iterations of an ensemble."""
        value: Optional[float] = self["iteration_stddev_seconds"]
        return value

    @property
    def iteration_p05_seconds(self) -> Optional[float]:
        """5th percentile of iterations, s: 5th percentile of an ensemble."""
        value: Optional[float] = self["iteration_p05_seconds"]
        return value

    @property
    def iteration_p50_seconds(self) -> Optional[float]:
        """Median of iterations, s: median of an ensemble."""
        value: Optional[float] = self["iteration_p50_seconds"]
        return value

    @property
    def iteration_p95_seconds(self) -> Optional[float]:
        """95th percentile of iterations, s: 95th percentile of an ensemble."""
        value: Optional[float] = self["iteration_p95_seconds"]
        return value

    @property
    def iteration_low_seconds(self) -> Optional[float]:
        """Low end of the band, s: low end of the band of iteration_seconds."""
        value: Optional[float] = self["iteration_low_seconds"]
        return value

    @property
    def iteration_high_seconds(self) -> Optional[float]:
        """High end of the band, s: high end of the band of iteration_seconds."""
        value: Optional[float] = self["iteration_high_seconds"]
        return value



class FoundMetrics:
    """The numbers of an order that a search found. A number that does not apply is None."""

    def __getitem__(self, key: str) -> Any:
        raise NotImplementedError

    @property
    def limit_bytes(self) -> float:
        """Memory limit, B: limit on activations of a device."""
        value: float = self["limit_bytes"]
        return value

    @property
    def limit_over_p_microbatches(self) -> float:
        """Memory limit (x p microbatches), ratio: limit_bytes / what p microbatches keep on a device."""
        value: float = self["limit_over_p_microbatches"]
        return value

    @property
    def cost_seconds(self) -> float:
        """Cost, s: largest span of a device: its first pass start to its last pass end."""
        value: float = self["cost_seconds"]
        return value

    @property
    def makespan_from_rest_seconds(self) -> float:
        """Makespan from rest, s: first pass start to last pass end of an iteration before which all devices are idle."""
        value: float = self["makespan_from_rest_seconds"]
        return value

    @property
    def bubble_rate(self) -> float:
        """Bubble rate, share: (cost - work) / cost of the device with the largest span."""
        value: float = self["bubble_rate"]
        return value

    @property
    def bubble_rate_busiest(self) -> float:
        """Bubble rate, of the busiest device, share: (cost - most work) / cost: the share that a better order could save at most."""
        value: float = self["bubble_rate_busiest"]
        return value

    @property
    def peak_activation_bytes(self) -> float:
        """Peak activation memory, B: most bytes of activations on a device at a time."""
        value: float = self["peak_activation_bytes"]
        return value

    @property
    def registered_cost_seconds(self) -> float:
        """Registered, s: cost_seconds of the best registered schedule."""
        value: float = self["registered_cost_seconds"]
        return value

    @property
    def bound_seconds(self) -> float:
        """Lower bound, s: lower bound on the time of any order within the limit."""
        value: float = self["bound_seconds"]
        return value



class PlannedMetrics:
    """The numbers of a layout of a plan. A number that does not apply is None."""

    def __getitem__(self, key: str) -> Any:
        raise NotImplementedError

    @property
    def iteration_seconds(self) -> float:
        """Iteration time, s: period of an iteration in steady state; the mean of an ensemble."""
        value: float = self["iteration_seconds"]
        return value

    @property
    def contended_iteration_seconds(self) -> Optional[float]:
        """Iteration time with contention, s: iteration_seconds where messages share links and NICs."""
        value: Optional[float] = self["contended_iteration_seconds"]
        return value

    @property
    def contended_stddev_seconds(self) -> Optional[float]:
        """Standard deviation with contention, s: iteration_stddev_seconds of the runs with contention."""
        value: Optional[float] = self["contended_stddev_seconds"]
        return value

    @property
    def iteration_low_seconds(self) -> float:
        """Low end of the band, s: low end of the band of iteration_seconds."""
        value: float = self["iteration_low_seconds"]
        return value

    @property
    def iteration_high_seconds(self) -> float:
        """High end of the band, s: high end of the band of iteration_seconds."""
        value: float = self["iteration_high_seconds"]
        return value

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """Tokens per second and GPU, 1/s: seq_length x samples_per_second_per_gpu."""
        value: float = self["tokens_per_second_per_gpu"]
        return value

    @property
    def mfu(self) -> float:
        """MFU, share: model_tflops_per_gpu / the GPU's peak."""
        value: float = self["mfu"]
        return value

    @property
    def mfu_causal(self) -> float:
        """MFU, causal, share: model_tflops_per_gpu_causal / the GPU's peak."""
        value: float = self["mfu_causal"]
        return value

    @property
    def peak_memory_bytes(self) -> float:
        """Peak memory, B: most bytes on a device at a time: activations, weights, gradients, optimizer state, buffers, overhead."""
        value: float = self["peak_memory_bytes"]
        return value

    @property
    def peak_memory_low_bytes(self) -> float:
        """Low end of the peak's band, B: low end of the band of peak_memory_bytes."""
        value: float = self["peak_memory_low_bytes"]
        return value

    @property
    def peak_memory_high_bytes(self) -> float:
        """High end of the peak's band, B: high end of the band of peak_memory_bytes."""
        value: float = self["peak_memory_high_bytes"]
        return value

    @property
    def fits(self) -> str:
        """Fits, fit: yes, no, or tight where capacity_bytes lies inside the band of peak_memory_bytes."""
        value: str = self["fits"]
        return value

    @property
    def headroom_bytes(self) -> float:
        """Headroom, B: capacity_bytes less peak_memory_bytes."""
        value: float = self["headroom_bytes"]
        return value

    @property
    def host_memory_bytes(self) -> Optional[float]:
        """Host memory of a node, B: most bytes of offloaded activations and states on the host of a node."""
        value: Optional[float] = self["host_memory_bytes"]
        return value

    @property
    def bubble(self) -> float:
        """Bubble, share: idle share of an iteration but that of collectives: ramps, order, imbalance, transfers, host copies."""
        value: float = self["bubble"]
        return value

    @property
    def days(self) -> Optional[float]:
        """Days, days: training on the tokens asked for, without failures."""
        value: Optional[float] = self["days"]
        return value

    @property
    def gpu_hours(self) -> Optional[float]:
        """GPU-hours, GPU-hours: days x 24 x gpus."""
        value: Optional[float] = self["gpu_hours"]
        return value

    @property
    def price(self) -> Optional[float]:
        """Price, money: gpu_hours x the price of a GPU-hour."""
        value: Optional[float] = self["price"]
        return value
