#!/usr/bin/env python3
"""Runs the authors' instances (data/) as scenarios, and compares what `pipesim run` says with theirs.

  run_as_scenarios.py PIPESIM DATA [FOLDER]     FOLDER: keeps the scenarios there

Fixed orders take their time and hold their bytes to the last digit that is written; automatic ones (data/automatic),
optima of an integer program (data/exact) and plans that offload (data/offload) keep the limit at no more cost. README.md
says of each of the authors' codes which scenario has its instances.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PIPESIM, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
FIXED_CHUNKS = {"1f1b-v", "v-half", "v-min", "v-search", "zb-v", "zb-v-handmade", "chimera", "dualpipe", "dualpipev", "stp"}


def with_unit(values, unit):
    return [f"{each} {unit}" for each in values] if isinstance(values, list) else f"{values} {unit}"


def pass_seconds(params):
    """F, B and W of a chunk; blocks as long as their passes where none is given."""
    keys = {"forward": "TF", "backward_input": "TB", "backward_weight": "TW", "overlapped": "TFB"}
    times = {key: params[name] for key, name in keys.items() if params.get(name) is not None}
    if "TFB" not in params and not any(isinstance(each, list) for each in times.values()):
        times["overlapped"] = sum(times.values())
    return {key: with_unit(value, "ms") for key, value in times.items()}


def per_device(times, chunks):
    """Seconds or bytes that differ by device, of all its chunks."""
    def of_all(text):
        number, unit = text.split()
        return f"{chunks * float(number)!r} {unit}"
    return {key: [of_all(each) for each in value] if isinstance(value, list) else of_all(value) for key, value in times.items()}


def given(times, chunks):
    if any(isinstance(each, list) for each in times.values()):
        return {"kind": "given", "per": "device", **per_device(times, chunks)}
    return {"kind": "given", "per": "stage", **times}


def scenario_of(data, instance):
    params, options = instance["params"], {**data.get("options", {}), **instance.get("options", {})}
    schedule = {"name": data["schedule"], **options}
    chunks = params["v"]
    if data["schedule"] not in FIXED_CHUNKS:
        schedule["virtual_pipeline_model_parallel_size"] = chunks
    memory = instance.get("memory", {})
    if "limit" in memory:
        schedule["memory_limit"] = f"{memory['limit']!r} GiB"
    kept = {key: with_unit(memory.get(key, 1), "GiB") for key in ("activation", "weight_stash")}
    return {"schedule": schedule,
            "parallel": {"pipeline_model_parallel_size": params["p"]},
            "batch": {"num_microbatches": params["m"]},
            "cost": {**given(pass_seconds(params), chunks), "transfer": f"{params['Tcomm']} ms"},
            "memory": given(kept, chunks)}


def vocabulary_scenario_of(data):
    """A microbatch's S, T, IF and IB on a device's share, and the collectives that join them."""
    params, times = data["params"], data["params"]["times"]
    backward = {key: times.get(name, times.get("BW", 0) / 2) for key, name in [("backward_input", "B"), ("backward_weight", "W")]}
    seconds = {"forward": times["F"], **backward, "output_forward": times["S"], "output_backward": times["T"],
               "input_forward": times["IF"], "input_backward": times["IB"], "transfer": params["Tcomm"]}
    names = {"embedding": "cif", "output": "c0", "softmax": "c1", "output_gradient": "c2", "embedding_gradient": "cib"}
    collective = {key: with_unit(params["collective"][name], "ms") for key, name in names.items()}
    return {"schedule": data["schedule"], "vocabulary": data["vocabulary"],
            "parallel": {"pipeline_model_parallel_size": params["p"]},
            "batch": {"num_microbatches": params["m"]},
            "cost": {"kind": "given", "per": "stage", **{key: f"{value} ms" for key, value in seconds.items()},
                     "collective": collective}}


def optimum_scenario_of(instance):
    """An instance of the authors' integer program, planned for by their heuristic's name."""
    def each(unit, *keys):
        return {key: with_unit(instance[key], unit) for key in keys}
    return {"schedule": {"name": "zb", "memory_limit": f"{instance['limit']} GiB"},
            "parallel": {"pipeline_model_parallel_size": instance["devices"]},
            "batch": {"num_microbatches": instance["microbatches"]},
            "optimizer": {"sync": "post_validation"},
            "cost": {"kind": "given", "per": "stage", **each("ms", "forward", "backward_input", "backward_weight", "transfer")},
            "memory": {"kind": "given", "per": "stage", **each("GiB", "activation", "weight_stash")}}


def offload_scenario_of(params):
    """Copies take `offload_time` of a chunk's passes; two devices share a link to the host."""
    schedule = {"name": "po-h", "virtual_pipeline_model_parallel_size": params["v"],
                "offload_chunks": params["offload_chunks"], "offload": {"plan": "best", "devices_per_link": 2}}
    if params["group_size"] > 1:
        schedule["group_size"] = params["group_size"]
    passes = pass_seconds(params)
    del passes["overlapped"]
    copy = with_unit(params["offload_time"] * (params["TF"] + params["TB"] + params["TW"]), "ms")
    return {"schedule": schedule,
            "parallel": {"pipeline_model_parallel_size": params["p"]},
            "batch": {"num_microbatches": params["m"]},
            "cost": {"kind": "given", "per": "stage", **passes, "transfer": with_unit(params["Tcomm"], "ms"),
                     "copy_out": copy, "copy_in": copy, "copy_solo_factor": 0.7},
            "memory": {"kind": "given", "per": "stage", "activation": "1 GiB", "weight_stash": "1 GiB"}}


def batch_scenario_of(case, times, transfers):
    """Messages that DualPipe posts together, with devices waiting for them or not."""
    return {"schedule": case["schedule"],
            "parallel": {"pipeline_model_parallel_size": case["p"]},
            "batch": {"num_microbatches": case["m"]},
            "framework": {"transfers": transfers},
            "cost": {"kind": "given", "per": "stage", **pass_seconds(times), "transfer": with_unit(times["Tcomm"], "ms")}}


def pair_scenario_of(params):
    """One device with a stage of the forward's layers and one of the backward's, which meet in a block."""
    def parts(suffix, *names):
        keys = {"attention": "attn", "experts": "mlp"}
        return {name: with_unit(params["seconds"].get(f"{keys.get(name, name)}.{suffix}", 0), "ms") for name in names}
    every = ("attention", "dispatch", "experts", "combine")
    layers = [params["forward_layers"], params["backward_layers"] or 1]
    return {"schedule": {"name": "interleaved-1f1b", "virtual_pipeline_model_parallel_size": 2,
                         "overlap_moe_expert_parallel_comm": True, "delay_wgrad_compute": params["delay_wgrad"],
                         "ep_overlap_early_attn_memory_release": params["early_attn_release"]},
            "parallel": {"pipeline_model_parallel_size": 1},
            "batch": {"num_microbatches": 2},
            "cost": {"kind": "given", "per": "stage",
                     "layer": {"count": layers, "forward": parts("fwd", *every), "backward_input": parts("bwd", *every),
                               "backward_weight": parts("dw", "attention", "experts")}}}


def sliced_scenario(schedule, instance, splits, cost, microbatches):
    return {"schedule": {"name": schedule, "splits": splits},
            "parallel": {"pipeline_model_parallel_size": instance["p"]},
            "batch": {"num_microbatches": microbatches},
            "cost": {"kind": "given", "per": "stage", **cost}}


def terapipe_scenario_of(instance, splits):
    """A slice's a + l s + c (s q + s s / 2) seconds: a third forward, the rest backward."""
    units = sum(instance["batch_and_slices"][0][1])
    attention = instance["c"] * units * units / 2
    seconds = instance["a"] + instance["l"] * units + attention
    cost = {"forward": f"{seconds / 3!r} ms", "backward_input": f"{2 * seconds / 3!r} ms", "backward_weight": 0,
            "fixed": {"forward": f"{instance['a'] / 3!r} ms", "backward_input": f"{2 * instance['a'] / 3!r} ms"},
            "attention_share": attention / seconds}
    return sliced_scenario("terapipe", instance, splits, cost, len(instance["batch_and_slices"]))


def causal_scenario_of(instance):
    """Attention of slice k is 2k + 1 times the first one's; W has none, and takes what the rest of F does."""
    splits = instance["splits"]

    def attention(seconds):
        return (seconds[1] - seconds[0]) / 2 * splits * splits
    forward, backward = sum(instance["TF"]), sum(instance["TBW"])
    weight = forward - attention(instance["TF"])
    cost = {"forward": f"{forward} ms", "backward_input": f"{backward - weight} ms", "backward_weight": f"{weight} ms",
            "attention_share": {"forward": attention(instance["TF"]) / forward,
                                "backward_input": attention(instance["TBW"]) / (backward - weight)},
            "transfer": f"{instance['Tcomm']} ms"}
    scenario = sliced_scenario("seq-1f1b", instance, splits, cost, instance["m"])
    scenario["memory"] = {"kind": "given", "per": "stage", "activation": f"{splits} GiB", "weight_stash": 0}
    return scenario


def equal_flops_scenario_of(instance):
    """The authors' FLOPs of a model, as seconds: attention of half a square, softmax among it, and all that is linear."""
    tokens, hidden, layers = instance["seq_length"], instance["hidden"], instance["num_layers"]
    head = hidden // instance["heads"]
    attention = layers * instance["heads"] * (4 * head + 3) * tokens * tokens / 2
    linear = tokens * (layers * (8 * hidden * hidden + 4 * hidden * instance["ffn"]) + 4 * hidden * instance["vocab"])
    seconds = f"{(attention + linear) / 1e12!r} s"
    scenario = sliced_scenario(
        "seq-1f1b", {"p": 2}, {"equal_flops": instance["splits"], "multiple_of": instance["round_to"]},
        {"forward": seconds, "backward_input": seconds, "backward_weight": seconds,
         "attention_share": attention / (attention + linear)}, 1)
    scenario["batch"].update(micro_batch_size=1, seq_length=tokens)
    return scenario


def dynapipe_scenario_of(instance):
    """Microbatches in multiples of 100; their messages are of latency alone, which no multiple changes."""
    schedule = {"name": "dynapipe"}
    if instance["memory_limit"] is not None:
        schedule["memory_limit"] = f"{instance['memory_limit']} GiB"
    return {"schedule": schedule,
            "parallel": {"pipeline_model_parallel_size": instance["p"]},
            "batch": {"num_microbatches": instance["m"], "factors": [each[0] / 100 for each in instance["TF"]]},
            "cluster": {"network": {"bandwidth": "400 Gbps", "latency": f"{instance['Tcomm']} ms"}},
            "cost": {"kind": "given", "per": "stage", "forward": "100 ms", "backward_input": "100 ms",
                     "backward_weight": "100 ms", "message": 0},
            "memory": {"kind": "given", "per": "stage", "activation": "1 GiB", "weight_stash": 0}}


def run(path):
    done = subprocess.run([PIPESIM, "run", path, "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return json.loads(done.stdout)["results"][0]


def traced(path):
    """Milliseconds of the first pass of each name in the trace of a scenario."""
    trace = path.with_suffix(".trace.json")
    subprocess.run([PIPESIM, "run", path, "--trace", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    return {event["name"]: event["dur"] / 1e3 for event in json.loads(trace.read_text())["traceEvents"] if "dur" in event}


def milliseconds(result, key):
    return round(1e3 * result[key], 6)


def peaks(result):
    return [round(device["peak_activation_bytes"] / 2**30, 6) for device in result["devices"]]


def fixed_faults(result, instance):
    wanted = instance["eval"]
    compared = [("makespan", milliseconds(result, "makespan_seconds"), wanted["makespan"]),
                ("longest span", milliseconds(result, "cost_seconds"), wanted["cost_max_span"])]
    if "peak_mem" in wanted:
        compared.append(("peaks", peaks(result), wanted["peak_mem"]["B_frees_none"]))
    return [f"{what} {got}, theirs {theirs}" for what, got, theirs in compared if got != theirs]


def automatic_faults(result, instance):
    faults = []
    cost = milliseconds(result, "cost_seconds")
    if cost > instance["cost"] * (1 + 1e-9):
        faults.append(f"cost {cost}, theirs {instance['cost']}")
    limit = instance.get("memory", {}).get("limit")
    if limit is not None and max(peaks(result)) > limit * (1 + 1e-9):
        faults.append(f"peaks {peaks(result)}, above the limit {limit}")
    return faults


def offload_faults(result, instance):
    makespan = milliseconds(result, "makespan_seconds")
    faults = [f"makespan {makespan}, theirs {instance['makespan']}"] if makespan > instance["makespan"] else []
    if any(ours > theirs for ours, theirs in zip(peaks(result), instance["peak"])):
        faults.append(f"peaks {peaks(result)}, theirs {instance['peak']}")
    return faults


def of_theirs(what, got, theirs):
    return [] if got == theirs else [f"{what} {got}, theirs {theirs}"]


def pair_faults(result, wanted):
    name = "0F1&1BW0" if wanted["params"]["backward_layers"] else "0F0"
    return of_theirs(f"duration of {name}", round(result["passes"][name], 6), wanted["eval"]["duration"])


def causal_faults(result, wanted):
    return (of_theirs("makespan", milliseconds(result, "makespan_seconds"), wanted["makespan"])
            + of_theirs("longest span", milliseconds(result, "cost_seconds"), wanted["cost_max_span"])
            + of_theirs("peaks", peaks(result), wanted["peak"]))


def slice_faults(result, wanted):
    return of_theirs("slices", result["slices"], wanted["slices"])


def dynapipe_faults(result, wanted):
    return (of_theirs("makespan", milliseconds(result, "makespan_seconds"), wanted["makespan"])
            + of_theirs("peaks", peaks(result), wanted["peak"]))


def makespan_faults(result, wanted):
    makespan = milliseconds(result, "makespan_seconds")
    return [] if makespan == wanted else [f"makespan {makespan}, theirs {wanted}"]


def planned_instances():
    for instance in json.loads((DATA / "exact/ilp_small.json").read_text())["instances"]:
        limited = {"cost": instance["cost"], "memory": {"limit": instance["limit"]}}
        yield instance["id"], optimum_scenario_of(instance), limited, automatic_faults
    for path in sorted((DATA / "offload").glob("p*.json")):  # others are refused by the authors' code
        data = json.loads(path.read_text())
        yield f"offload_{path.stem}", offload_scenario_of(data["params"]), data, offload_faults


def batched_instances():
    for number, case in enumerate(json.loads((DATA / "batches/dualpipe.json").read_text())["cases"]):
        for at, times in enumerate(case["evals"]):
            for transfers, key in [("blocking", "makespan_blocking"), ("overlapped", "makespan_dataflow")]:
                scenario = batch_scenario_of(case, times, transfers)
                yield f"batches_{number}_{at}_{transfers}", scenario, times[key], makespan_faults


def instances_of(path):
    for number, instance in enumerate(json.loads((DATA / path).read_text())["instances"]):
        yield f"{pathlib.Path(path).stem}_{instance.get('id', number)}", instance


def unequal_instances():
    for path in sorted((DATA / "pairs").glob("*.json")):
        data = json.loads(path.read_text())
        yield f"pair_{path.stem}", pair_scenario_of(data["params"]), data, pair_faults
    for name, instance in instances_of("unequal/terapipe_slices.json"):
        slices = instance["batch_and_slices"][0][1]
        for splits, how in [(slices, "given"), ({"optimal": sum(slices)}, "chosen")]:
            yield f"{name}_{how}", terapipe_scenario_of(instance, splits), instance["seconds"], makespan_faults
    for name, instance in instances_of("unequal/seq_1f1b.json"):
        yield name, causal_scenario_of(instance), instance, causal_faults
    for name, instance in instances_of("unequal/uniform_comp.json"):
        yield name, equal_flops_scenario_of(instance), instance, slice_faults
    for name, instance in instances_of("unequal/dynapipe.json"):
        yield name, dynapipe_scenario_of(instance), instance, dynapipe_faults


def as_drained(data):
    """A stream of PipeDream, from its first microbatch to its last, is 1F1B of all of them."""
    return {**data, "schedule": "1f1b"} if data["schedule"].startswith("pipedream") else data


def instances():
    """(name, scenario, instance, what compares it)"""
    yield from planned_instances()
    yield from batched_instances()
    yield from unequal_instances()
    for path in sorted(DATA.glob("*.json")):
        data = as_drained(json.loads(path.read_text()))
        yield path.stem, scenario_of(data, data), data, fixed_faults
    for path in sorted((DATA / "automatic").glob("*.json")):
        data = json.loads(path.read_text())
        for instance in data["instances"]:
            yield f"{path.stem}_{instance['id']}", scenario_of(data, instance), instance, automatic_faults
    for path in sorted((DATA / "vocabulary").glob("*.json")):
        data = json.loads(path.read_text())
        yield path.stem, vocabulary_scenario_of(data), data, fixed_faults


def main(folder):
    found, count = [], 0
    for name, scenario, instance, faults_of in instances():
        path = folder / f"{name}.yaml"
        path.write_text(json.dumps(scenario, indent=1))  # JSON is YAML
        count += 1
        try:
            result = run(path)
            if faults_of is pair_faults:
                result["passes"] = traced(path)
            found += [f"{name}: {fault}" for fault in faults_of(result, instance)]
        except ValueError as error:
            found.append(f"{name}: {error}")
    print("\n".join(found) if found else f"{count} instances are as their authors' code has them")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) > 3:
        sys.exit(main(pathlib.Path(sys.argv[3])))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(pathlib.Path(temporary)))
