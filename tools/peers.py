"""How a published run is told to calculon and to SimuMax, for tools/compare_peers."""
import copy
import json
import logging
import os
import pathlib
import re
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
# From data sheets, by the start of a GPU's name: NVLink's GB/s each way, half-precision TFLOP/s without tensor cores.
CARDS = {"v100": (150, 31.4), "a100": (300, 78), "a800": (200, 78), "h100": (450, 133.8), "h200": (450, 133.8),
         "h800": (200, 133.8), "b200": (900, 150), "b300": (900, 150), "gb200": (900, 150), "gb300": (900, 150)}
UNITS = {"TFLOP/s": 1, "PFLOP/s": 1e3, "TB/s": 1e3, "GB/s": 1, "Gbps": 1 / 8, "GiB": 1, "MiB": 1 / 1024, "TB": 1e3}


def catalog(name):
    return yaml.safe_load((ROOT / "models/catalog" / (name + ".yaml")).read_text())


def number(text):
    value, unit = str(text).split()
    return float(value) * UNITS[unit]


def inherited(table, name):
    """An entry with what it takes over from the entry that it is `like`."""
    entry = table[name]
    return {**(inherited(table, entry["like"]) if "like" in entry else {}), **entry}


class Run:
    """A scenario of a published run: its model with the base's keys, its sizes, and its cluster in a peer's units."""

    def __init__(self, path, models, clusters, gpus):
        self.keys = yaml.safe_load(path.read_text())
        model = dict(self.keys["model"])
        self.model = {**models.get(model.pop("base", None), {}), **model}
        for group in ("parallel", "batch", "memory", "cost"):
            setattr(self, group, self.keys[group])
        self.tp, self.pp, self.dp, self.cp, self.ep, self.etp = (
            self.parallel[name + "_size"] for name in
            ("tensor_model_parallel", "pipeline_model_parallel", "data_parallel", "context_parallel",
             "expert_model_parallel", "expert_tensor_parallel"))
        self.chunks = self.parallel.get("virtual_pipeline_model_parallel_size", 1)
        self.gpus = self.tp * self.pp * self.dp * self.cp
        self.heads = self.model["num_attention_heads"]
        self.head_size = self.model.get("kv_channels", self.model["hidden_size"] // self.heads)
        self.gated = self.model.get("family", "gpt") == "llama"
        self.ffn = self.model.get("ffn_hidden_size", 4 * self.model["hidden_size"])
        self.precision = self.memory["precision"]
        self.recompute = str(self.keys.get("recompute", "none"))  # a map of some layers is one that neither knows
        self.cluster = inherited(clusters, self.keys["cluster"])
        self.gpu = self.cluster["gpu"]
        card = inherited(gpus, self.gpu)
        chip = {**card, **card.get("chip", {})}
        self.rates = {name: number(rate) for name, rate in card["peak"].items() if name != "source"}
        self.rates.setdefault("bf16", self.rates.get("fp16"))
        self.memory_bandwidth = number(chip["memory_bandwidth"])
        found = [card for card in CARDS if self.gpu.startswith(card)]
        self.link, self.vector = CARDS[found[0]] if found else (None, None)
        node = self.cluster["node"]
        self.node = node["gpus"]
        self.nic = number(self.cluster["network"]["bandwidth"]) * node["nics"] / self.node  # GB/s of a GPU

    def microbatches(self):
        return self.batch["global_batch_size"] // (self.dp * self.batch["micro_batch_size"])

    def virtual_passes(self):
        return self.pp * self.chunks * self.microbatches()

    def stages(self):
        return self.parallel.get("num_layers_per_stage")

    def missing(self, words):
        """The first reason of `words`, pairs of a reason and whether it holds."""
        return next((reason for reason, holds in words if holds), None)

    def common_gaps(self):
        """Reasons that hold for both peers."""
        schedule = self.keys["schedule"]
        return [("no such GPU family", self.link is None),
                ("weights or gradients sharded (FSDP, ZeRO 2 and 3)", "data_parallel_sharding_strategy" in self.memory),
                ("optimizer sharded within groups", "data_parallel_shard_degree" in self.memory),
                ("activations offloaded", "offload" in self.keys),
                ("all-to-all overlapped with compute", isinstance(schedule, dict)),
                ("mxfp8 or nvfp4", self.precision in ("mxfp8", "nvfp4")),
                ("windows in attention", "attention_window" in self.model)]


class Calculon:
    """calculon: one analytical formula; its system files as shipped, others from the nearest and a data sheet."""

    def __init__(self, folder):
        sys.path.insert(0, str(folder))
        import calculon
        from calculon.llm.llm import Llm
        self.calculon, self.Llm, self.folder = calculon, Llm, folder
        self.log = logging.getLogger("peer")

    def gap(self, run):
        heads = run.model.get("num_query_groups", run.heads)
        return run.missing(run.common_gaps() + [
            ("experts", "moe" in run.model), ("context parallel", run.cp > 1),
            ("latent attention", "mla" in run.model), ("grouped queries", heads not in (1, run.heads)),
            ("gated MLP", run.gated), ("recomputation by module", run.recompute not in ("none", "full", "core_attn"))])

    def system(self, run):
        """The shipped file where the GPU has one. The test of memory is off, as in its own a100_80e.json."""
        hopper = not run.gpu.startswith(("v100", "a100", "a800"))
        name = "h100_80g_nvl8.json" if hopper else "a100_80g.json"
        keys = json.loads((self.folder / "systems" / name).read_text())
        keys["mem1"]["GiB"] = keys["mem2"]["GiB"] = 1e9
        if run.gpu not in ("a100-sxm-80gb", "h100-sxm"):
            for kind, peak in (("float16", "bf16"), ("float8", "fp8")):
                if kind in keys["matrix"]:
                    keys["matrix"][kind]["tflops"] = run.rates[peak]
                    keys["vector"][kind]["tflops"] = run.vector
            keys["mem1"]["GBps"] = run.memory_bandwidth
        keys["networks"][0]["bandwidth"] = run.link
        keys["networks"][1]["bandwidth"] = run.nic
        return self.calculon.System(keys)

    def seconds(self, run):
        attention = {"full": "full", "core_attn": "attn_only", "none": "none"}[run.recompute]
        if attention == "none" and run.memory["flash_attention"]:
            attention = "attn_only"  # the nearest to FlashAttention, which keeps no scores and computes them again
        near = lambda ranks: 0 if ranks <= 8 else 1
        overlap = "ring" if run.cost["tp_comm_overlap"] and run.tp > 1 else "none"
        keys = {
            "num_procs": run.gpus, "tensor_par": run.tp, "pipeline_par": run.pp, "data_par": run.dp,
            "tensor_par_net": near(run.tp), "data_par_net": near(run.tp * run.dp), "pipeline_par_net": near(run.gpus),
            "batch_size": run.batch["global_batch_size"], "microbatch_size": run.batch["micro_batch_size"],
            "datatype": "float8" if run.precision == "fp8" else "float16", "fused_activation": True,
            "attention_type": "multihead", "activation_recompute": attention, "pipeline_interleaving": run.chunks,
            "optimizer_sharding": bool(run.memory.get("use_distributed_optimizer")) and run.dp > 1,
            "tensor_par_comm_type": "rs_ag" if run.parallel["sequence_parallel"] else "ar",
            "tensor_par_overlap": overlap, "seq_par_ag_redo": False,
            "data_par_overlap": run.cost["overlap_grad_reduce"] and run.dp > 1, "weight_offload": False,
            "activations_offload": False, "optimizer_offload": False, "training": True}
        model = self.Llm(self.Llm.Application({
            "hidden": run.model["hidden_size"], "feedforward": run.ffn, "seq_size": run.batch["seq_length"],
            "attn_heads": run.heads, "attn_size": run.head_size, "num_blocks": run.model["num_layers"]}), self.log)
        system = self.system(run)
        model.compile(system, self.Llm.Execution.from_json(keys))
        model.run(system)
        return model.get_total_time()


class SimuMax:
    """SimuMax: its B200 file for Blackwell, its A100's default efficiencies at a data sheet's rates for others."""

    MODULES = {"layernorm", "mla_up_proj", "moe_act", "mlp", "moe"}

    def __init__(self, folder):
        os.environ["SIMUMAX_TMP_PATH"] = tempfile.mkdtemp()
        sys.path.insert(0, str(folder))
        from simumax.core import config, perf_llm
        self.config, self.perf_llm = config, perf_llm
        name = {"a100": "a100_pcie", "b200": "b200_bf16_ceperm"}
        self.files = {key: json.loads((folder / "configs/system" / (file + ".json")).read_text())
                      for key, file in name.items()}

    def gap(self, run):
        modules = set(run.recompute.split("+"))
        return run.missing(run.common_gaps() + [
            ("prediction of several tokens (MTP)", "mtp_num_layers" in run.model),
            ("stages of unequal layers", run.stages() is not None and (run.chunks > 1 or len(set(run.stages()[1:-1])) > 1)),
            ("such recomputation", run.recompute not in ("none", "full", "core_attn") and modules - self.MODULES)])

    def system(self, run):
        blackwell = run.gpu.startswith(("b", "gb"))
        keys = copy.deepcopy(self.files["b200" if blackwell else "a100"])
        accelerator = keys["accelerator"]
        for name, operation in accelerator["op"].items():
            fp8 = name.startswith("fp8")
            operation["tflops"] = run.rates.get("fp8", 0) if fp8 else run.rates["bf16"]
            if fp8 and not operation["efficient_factor"]:  # its B200 was not measured in fp8: as in half precision
                operation["efficient_factor"] = accelerator["op"][name[4:]]["efficient_factor"]
            if not blackwell and not run.gpu.startswith("a100"):
                operation["accurate_efficient_factor"] = None  # measured on another card
        for way in accelerator["bandwidth"].values():
            way["gbps"] = run.memory_bandwidth
        keys["num_per_node"] = run.node
        keys["networks"] = copy.deepcopy(self.files["b200"]["networks"])  # the one file with NVLink in a node
        for way in ("low_intra_node", "high_intra_node"):
            keys["networks"][way]["bandwidth"]["gbps"] = run.link
        keys["networks"]["inter_node"]["bandwidth"]["gbps"] = run.nic * run.node
        return self.config.SystemConfig.init_from_dict(keys)

    def recomputation(self, run):
        if run.recompute == "none":
            return {"enable_recompute": False}
        every = {"enable_recompute": True, "recompute_layer_num": run.model["num_layers"]}
        if run.recompute in ("full", "core_attn"):
            return {**every, "recompute_granularity": "full_block" if run.recompute == "full" else "sdp_only"}
        return {**every, "recompute_granularity": "selective_recompute", "megatron_recompute": True,
                "megatron_recompute_modules": run.recompute.split("+")}

    def strategy(self, run):
        stages = run.stages()
        ends = {"num_layers_in_first_pipeline_stage": stages[0], "num_layers_in_last_pipeline_stage": stages[-1]} \
            if stages else {}
        split = {key: run.parallel[key] for key in run.parallel if key.startswith("account_for")}
        in_fp32 = run.memory["accumulate_allreduce_grads_in_fp32"]
        strategy = self.config.StrategyConfig(
            seq_len=run.batch["seq_length"], micro_batch_size=run.batch["micro_batch_size"],
            micro_batch_num=run.microbatches(), dtype="bf16",
            fp8=run.precision == "fp8", world_size=run.gpus, tp_size=run.tp, cp_size=run.cp, pp_size=run.pp,
            ep_size=run.ep, etp_size=run.etp, enable_sequence_parallel=run.parallel["sequence_parallel"],
            interleaving_size=run.chunks, pp_comm_async=run.chunks == 1, zero_state=int(bool(run.memory.get("use_distributed_optimizer"))),
            grad_reduce_in_bf16=not in_fp32, use_fp32_accum_grad=in_fp32,
            cross_entropy_loss_fusion=run.memory["cross_entropy_loss_fusion"],
            overlap_grad_reduce=run.cost["overlap_grad_reduce"], use_flash_sdp=run.memory["flash_attention"],
            use_math_sdp=not run.memory["flash_attention"], dispatch_probs=True, **self.recomputation(run), **split, **ends)
        strategy.sanity_check()
        return strategy

    def model(self, run):
        keys = {"hidden_size": run.model["hidden_size"], "head_num": run.heads, "head_size": run.head_size,
                "kv_head_num": run.model.get("num_query_groups", run.heads), "intermediate_size": run.ffn,
                "layer_num": run.model["num_layers"], "vocab_size": run.model["vocab_size"], "use_swiglu": run.gated,
                "model_name": "run", "model_type": "moe" if "moe" in run.model else "dense"}
        if "mla" in run.model:
            keys.update(run.model["mla"], attention_type="mla")
        if "moe" in run.model:
            moe = run.model["moe"]
            shared = moe.get("shared_experts", 0) * moe["ffn_hidden_size"]
            keys.update(expert_num=moe["num_experts"], topk=moe["router_topk"], dense_layers=moe.get("first_dense_layers", 0),
                        moe_ffn_hidden_size=moe["ffn_hidden_size"], moe_shared_expert_intermediate_size=shared or None)
        return self.config.ModelConfig(**keys)

    def seconds(self, run):
        perf = self.perf_llm.PerfLLM()
        perf.configure(strategy_config=self.strategy(run), model_config=self.model(run), system_config=self.system(run))
        perf.run_estimate()
        time = perf.analysis_cost().data["duration_time_per_iter"]
        value, unit = re.fullmatch(r"([\d.]+)\s*(\w*)", str(time)).groups()
        return float(value) * {"": 1e-3, "ms": 1e-3, "s": 1, "us": 1e-6, "min": 60}[unit]
