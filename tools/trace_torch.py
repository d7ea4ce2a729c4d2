#!/usr/bin/env python3
"""Describes a PyTorch model for `model: {traced: FILE}`, from its own code and without a GPU (PyTorch 1.13 or later).

    tools/trace_torch.py model.py:build hidden=4096 layers=32 -o model.json    # or package.module:build
    tools/trace_torch.py hf:FOLDER_OR_NAME num_hidden_layers=8 -o model.json   # transformers' AutoConfig

The function is called with the arguments and returns a torch.nn.Module. It is built on the meta device: no number is
stored or computed. Its forward is run for token ids of BATCH x SEQ, or for what --inputs makes; then each block of its
longest list of blocks is run forward and backward by itself, also for twice the batch and for the longest sequence, so
that every size is known in the microbatch b and the sequence s, between these two lengths. docs/reference/traced.md has
the format. Exit codes: 0 written, 2 bad input, or a model that cannot be described.
"""
import argparse
import ast
import contextlib
import importlib
import json
import os
import re
import sys

try:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:
    print("trace_torch.py needs PyTorch 1.13 or later", file=sys.stderr)
    sys.exit(2)

META = torch.device("meta")
# Last words of a parameter's name, less `weight` and `bias`: of matrices divided by outputs, by inputs, of experts.
COLUMNS = (r"(to_|w_?|W)?(q|k|v|qkv)|(q|k|v|qkv|kv)(_b)?_(proj|lin)|query|key|value|query_key_value|Wqkv|c_attn|in_proj"
           r"(_weight|_bias)?|(w_?)?(gate|up|gate_up)|(gate|up|gate_up)_proj|w1|w3|fc1|fc_in|c_fc|lin1|linear_(qkv|fc1)"
           r"|dense_h_to_4h")
ROWS = r"(to_|w_?|W)?(o|out)|((o|out|down|c)_)?proj|(w_?)?down|w2|fc2|fc_out|lin2|linear_(proj|fc2)|dense(_4h_to_h)?"
EXPERTS = r"(local_|routed_)?experts?"
MATMULS = {"aten.mm": (0, 1), "aten.bmm": (0, 1), "aten.addmm": (1, 2), "aten.baddbmm": (1, 2)}


class BadInput(Exception):
    """Bad input, or a model that is not described."""


@contextlib.contextmanager
def told(what):
    """Any error, also in code of others, as one line that begins with `what`."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{what}: {error}") from error
    except Exception as error:
        lines = str(error).strip().splitlines() or ["it says nothing"]
        raise BadInput(f"{what}: {type(error).__name__}: {lines[0].split('. ')[0]}") from error


class OnMeta(TorchDispatchMode):
    """Makes every tensor on the meta device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default and not isinstance(args[0], torch.Tensor):
            return torch.scalar_tensor(args[0])  # 1.13 passes a divisor so
        kwargs = dict(kwargs or {})
        if any(argument.name == "device" for argument in function._schema.arguments):
            kwargs["device"] = META
        with told(f"{function} of shapes without numbers"):
            made = function(*args, **kwargs)
        if isinstance(made, torch.Tensor) and made.dim() > 0 and made.device != META:
            return torch.empty_like(made, device=META)
        return made


def split_arguments(words):
    arguments = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise BadInput(f"'{word}' is no argument of the form NAME=value")
        try:
            arguments[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            arguments[name] = {"true": True, "false": False}.get(text, text)
    return arguments


def load(target):
    """The function that FILE.py:FUNCTION or MODULE:FUNCTION names."""
    place, colon, name = target.rpartition(":")
    if not colon:
        raise BadInput(f"'{target}': expected FILE.py:FUNCTION, MODULE:FUNCTION or hf:NAME")
    folder, file = os.path.split(place) if place.endswith(".py") else ("", place)
    sys.path.insert(0, os.path.abspath(folder))
    with told(f"{place} cannot be loaded"):
        module = importlib.import_module(file[:-3] if file.endswith(".py") else file)
    if not callable(getattr(module, name, None)):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise BadInput(f"{place} has no function '{name}'; it has {', '.join(sorted(known)[:12]) or 'none'}")
    return getattr(module, name)


def build(target, arguments, dtype):
    make = None if target.startswith("hf:") else load(target)
    with told(target), OnMeta():
        if make is None:
            from transformers import AutoConfig, AutoModelForCausalLM
            config = AutoConfig.from_pretrained(target[3:], **arguments, use_cache=False)
        model = make(**arguments) if make else AutoModelForCausalLM.from_config(config)
    if not isinstance(model, torch.nn.Module):
        raise BadInput(f"{target} returns {type(model).__name__}, no torch.nn.Module")
    return model.to(dtype).train()


def find_blocks(model, name):
    """The list of blocks that is named, or the one with the most parameters."""
    lists = {path: list(module.children()) for path, module in model.named_modules()
             if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict))}
    if name is not None:
        if name not in lists:
            raise BadInput(f"--blocks {name}: there is no such list; there are {', '.join(lists) or 'none'}")
        return name, lists[name]
    sizes = {path: sum(p.numel() for block in blocks for p in block.parameters())
             for path, blocks in lists.items() if 0 < len({type(b) for b in blocks}) <= max(1, len(blocks) // 2)}
    if not any(sizes.values()):
        raise BadInput("the model has no list of blocks (ModuleList, ModuleDict or Sequential)")
    path = max(sizes, key=sizes.get)
    return path, lists[path]


def role_of(name, names, options):
    """How ranks divide a block's parameter: columns, rows, experts-columns, experts-rows or whole."""
    words = [word for word in name.split(".") if word not in ("weight", "bias") and not word.isdigit()]
    is_in = any(re.fullmatch(options.experts, word) for word in words[:-1])
    # A router is called `gate` too.
    parent = name.rpartition(".")[0].rpartition(".")[0]
    beside = {other[len(parent):].lstrip(".").split(".")[0] for other in names if other.startswith(parent)}
    router = words[-1] == "gate" and not is_in and any(re.fullmatch(options.experts, each) for each in beside)
    if router or any(re.fullmatch(options.whole, text) for text in (".".join(words[-2:]), words[-1])):
        return "whole"
    numbered = ".".join(re.sub(r"\.(weight|bias)$", "", name).split(".")[-2:])
    for text in (numbered, ".".join(words[-2:]), *reversed(words[-2:])):
        for role in ("columns", "rows"):
            if re.fullmatch(getattr(options, role), text):
                return f"experts-{role}" if is_in else role
    return "experts-columns" if is_in else "whole"


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(each)


class Trace(TorchDispatchMode):
    """The operations of one block at one size. Tensors are told apart by their storages."""

    current = None

    def __init__(self):
        super().__init__()
        self.held = {}  # storages, so that no address comes twice
        self.whole = {}  # storage -> elements
        self.operations = {"forward": [], "backward": []}
        self.phase = "forward"
        self.saved = []
        self.heads = {}  # storage -> numbers of heads

    def key(self, tensor):
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        if storage._cdata not in self.held:
            self.held[storage._cdata] = (storage, len(self.held))
            self.whole[len(self.held) - 1] = (storage.nbytes() // tensor.element_size(), str(tensor.dtype)[6:])
        return self.held[storage._cdata][1]

    def add(self, name, reads, writes, **more):
        sides = [[{"storage": self.key(t), "elements": t.numel(), "type": str(t.dtype)[6:]} for t in side]
                 for side in (reads, writes)]
        self.operations[self.phase].append(dict(op=name, reads=sides[0], writes=sides[1], **more))

    def pack(self, tensor):
        if isinstance(tensor, torch.Tensor) and self.phase == "forward":
            self.saved.append(self.key(tensor))
        return tensor

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function).rpartition(".")[0]
        out = function(*args, **(kwargs or {}))
        if name in ("aten.transpose", "aten.permute") and out.dim() > 3:
            was, now = args[0].stride(), out.stride()
            if was[-1] == now[-1] and was[-2] != now[-2]:  # heads are turned to the front, as for attention
                self.heads.setdefault(self.key(out), set()).add(args[0].shape[-2])
        reads = list(tensors_in([args, kwargs or {}]))
        writes = list(tensors_in(out))
        mutates = any(a.alias_info is not None and a.alias_info.is_write for a in function._schema.arguments)
        storages = {self.key(t) for t in reads}
        made = [t for t in writes if mutates or self.key(t) not in storages]
        if not made or "empty" in name:
            return out
        more = {}
        if name in MATMULS:
            a, b = (args[i] for i in MATMULS[name])
            more["matmul"] = {"batch": a.shape[0] if a.dim() == 3 else 1, "m": a.shape[-2], "n": b.shape[-1],
                              "k": a.shape[-1]}
            more["operands"] = [self.key(a), self.key(b)]
            more["places"] = [(self.key(a), a.storage_offset()), (self.key(b), b.storage_offset())]
        self.add(name, reads, made, **more)
        return out


class Attention(torch.autograd.Function):
    """scaled_dot_product_attention as a GPU's fused kernels run it."""

    @staticmethod
    def forward(context, query, key, value, causal):
        batch, heads, queries, _ = query.shape
        out = query.new_empty((batch, queries, heads, value.shape[-1])).transpose(1, 2)
        sums = query.new_empty(query.shape[:-1], dtype=torch.float32)
        context.save_for_backward(query, key, value, out, sums)
        context.causal = causal
        Attention.add("attention", [query, key, value], [out, sums], causal)
        return out

    @staticmethod
    def backward(context, gradient):
        saved = context.saved_tensors
        made = [torch.empty_like(each) for each in saved[:3]]
        Attention.add("attention_backward", [*saved, gradient], made, context.causal)
        return (*made, None)

    @staticmethod
    def add(name, reads, writes, causal):
        (batch, heads, queries, qk), (_, groups, keys, _), (*_, v) = (each.shape for each in reads[:3])
        if Trace.current is not None:
            Trace.current.add(name, reads, writes, causal=causal, attention={
                "batch": batch, "heads": heads, "groups": groups, "queries": queries, "keys": keys, "qk": qk, "v": v})


def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    four = [each.reshape((-1,) + (1,) * (3 - each.dim()) + each.shape[-3:]) for each in (query, key, value)]
    return Attention.apply(*four, is_causal).reshape(query.shape[:-1] + value.shape[-1:])


def detached(value):
    if isinstance(value, torch.Tensor):
        return value.detach().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(detached(each) for each in value)
    return {key: detached(each) for key, each in value.items()} if isinstance(value, dict) else value


def trace_block(block, args, kwargs):
    """One block's forward and backward for the arguments that the model called it with."""
    args, kwargs = detached(args), detached(kwargs)
    trace = Trace()
    parameters = {name: trace.key(p) for name, p in block.named_parameters()}
    given = list(tensors_in([args, kwargs]))
    outside = {trace.key(t) for t in given if not t.requires_grad} | {trace.key(b) for b in block.buffers()}
    gradients = {}  # storage -> parameter
    hooks = [p.register_hook(lambda gradient, name=name: gradients.update({trace.key(gradient): name}))
             for name, p in block.named_parameters() if p.requires_grad]
    try:
        Trace.current = trace
        with OnMeta(), trace, torch.autograd.graph.saved_tensors_hooks(trace.pack, lambda t: t):
            out = next(tensors_in([block(*args, **kwargs)]))
            trace.phase = "backward"
            if not out.requires_grad:
                raise BadInput("a block's output depends on nothing that is trained")
            out.backward(torch.empty_like(out))
    finally:
        Trace.current = None
        for hook in hooks:
            hook.remove()
        block.zero_grad(set_to_none=True)
    return {"trace": trace, "parameters": parameters, "outside": outside, "gradients": gradients,
            "input": [trace.key(t) for t in given if t.requires_grad], "output": trace.key(out), "width": out.shape[-1]}


def arguments_of_blocks(model, blocks, inputs):
    """The arguments that the model calls each block with."""
    calls = {}

    def keep(index, forward):
        def keeping(*args, **kwargs):
            if index in calls:
                raise BadInput("a block is called more than once in a forward: it is not described")
            calls[index] = (args, kwargs)
            return forward(*args, **kwargs)
        return keeping

    for index, block in enumerate(blocks):
        block.forward = keep(index, block.forward)
    try:
        model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    finally:
        for block in blocks:
            del block.forward
    if len(calls) < len(blocks):
        raise BadInput("the forward does not call every block of the list: name another with --blocks")
    return [calls[index] for index in range(len(blocks))]


def size_text(values, options, what):
    """A number seen at the three sizes as a product of b, s and a constant."""
    powers = [next((power for power in range(3) if other * of ** power == values[0] * to ** power), None)
              for other, of, to in zip(values[1:], (1, options.seq), (2, options.longest))]
    if None in powers:
        b, s = options.batch, options.seq
        raise BadInput(f"{what}: {values} for {b} x {s}, {2 * b} x {s} and {b} x {options.longest} tokens are no product of "
                       "the two: trace a range of lengths (--seq, --longest) that crosses no window")
    factor = values[0] / (options.batch ** powers[0] * options.seq ** powers[1])
    words = ["b"] * powers[0] + ["s"] * powers[1]
    return "*".join(words + [f"{factor:.17g}"] * (factor != 1)) if words else values[0]


def same(values, what):
    if any(value != values[0] for value in values):
        raise BadInput(f"{what} differs between sizes: what the block does depends on b or s")
    return values[0]


def present(**facts):
    return {key: value for key, value in facts.items() if value not in (None, "")}


class Description:
    """One block, from its traces at three sizes. Ranks divide tensors between a matrix of columns and one of rows."""

    def __init__(self, block, traces, options):
        self.traces, self.first, self.options = traces, traces[0], options
        names = list(self.first["parameters"])
        self.roles = {key: role_of(name, names, options) for name, key in self.first["parameters"].items()}
        self.name_of = {key: name for name, key in self.first["parameters"].items()}
        self.shapes = {name: list(p.shape) for name, p in block.named_parameters()}
        self.division = {key: self.division_of(role, len(self.shapes[self.name_of[key]]))
                         for key, role in self.roles.items()}
        self.tensors, self.index, self.heads = [], {}, {}
        self.made_of = dict(self.roles)  # storages computed from one parameter alone, such as a cast
        self.entered, self.made, self.read_for_weights = set(), set(), set()

    @staticmethod
    def division_of(role, dimensions=2):
        """A bias of a matrix divided by its inputs is whole."""
        if role == "whole" or (role == "rows" and dimensions == 1):
            return ""
        return "tensor" if role in ("columns", "rows") else "experts"

    def tensor(self, of_all, what):
        """The index of a tensor in the block's table."""
        facts = of_all[0]
        elements = size_text([each["elements"] for each in of_all], self.options, what)
        key = facts["storage"]
        entry = present(storage=key, elements=elements, type=facts["type"], division=self.division.get(key),
                        parameter=self.name_of.get(key))
        key = json.dumps(entry)
        if key not in self.index:
            self.index[key] = len(self.tensors)
            self.tensors.append(entry)
        return self.index[key]

    def matmul(self, operation, phase):
        """Which side of a matmul the ranks divide, and what its results are."""
        keys = operation["operands"]
        roles = [self.made_of.get(key) for key in keys]
        role = next((role for role in roles if role), None)
        divided = [bool(self.division.get(key)) for key in keys]
        experts = any(self.division.get(key) == "experts" for key in keys)
        facts = {"experts": True} if experts else {}
        if role is not None and phase == "forward":
            self.exchange(operation, roles, role, facts)
        if role == "whole":
            return facts, ""
        if role is not None:
            into = (role.endswith("columns")) == (phase == "forward")
            facts["divided"] = "n" if into else "k"
            return facts, self.division_of(role) if into else ""
        if not any(divided):
            return facts, ""
        gradient = any(w["storage"] in self.first["gradients"] for w in operation["writes"])
        batched = operation["matmul"]["batch"] > 1 and not gradient
        facts["divided"] = "batch" if batched else "m" if divided[0] else "n"
        return facts, "experts" if experts else "tensor"

    def exchange(self, operation, roles, role, facts):
        """Where values enter the ranks' part of a block, or leave it."""
        values, matrix = operation["places"] if roles[1] else operation["places"][::-1]
        if role.endswith("rows") != bool(self.division.get(values[0])):
            name = self.name_of.get(matrix[0], "a matrix")
            how = "divide" if self.division.get(values[0]) else "hold whole"
            raise BadInput(f"{name} is taken as {role}, and reads values that ranks {how}: say how this matrix and those "
                           f"before it are divided (--columns, --rows, --whole; --whole '.*' for no tensor ranks)")
        if role.endswith("rows"):
            facts["exchange"] = "leave"
        elif role != "whole" and values not in self.entered:
            facts["exchange"] = "enter"
            self.entered.add(values)

    def describe(self, phase, index):
        at_once = [each["trace"].operations[phase][index] for each in self.traces]
        name = same([each["op"] for each in at_once], "an operation")
        operation = at_once[0]
        what = f"{phase} operation {index}, {name}"
        same([len(each["reads"]) for each in at_once], f"the number of tensors of {what}")
        facts = {"op": name}
        inputs = [t["storage"] for t in operation["reads"]]
        outputs = [t["storage"] for t in operation["writes"]]
        divisions = {self.division.get(key, "") for key in inputs if key not in self.roles}
        division = next((d for d in ("experts", "tensor") if d in divisions), "")
        if "matmul" in operation:
            facts["matmul"] = self.sizes(at_once, "matmul", what)
            more, division = self.matmul(operation, phase)
            facts.update(more)
            made = self.first["gradients"].get(outputs[0])
            facts["parameter"] = next((self.name_of[k] for k in operation["operands"] if k in self.name_of), made)
            if phase == "forward" and outputs[0] in self.first["trace"].heads:
                self.heads[facts["parameter"]] = sorted(self.first["trace"].heads[outputs[0]])
        elif "attention" in operation:
            facts["attention"] = self.sizes(at_once, "attention", what)
            facts["causal"] = operation["causal"]
            if division:
                facts["divided"] = "heads"
        self.follow(inputs, outputs, division)
        # Matmuls that make weights' gradients, and sums of what these read: biases'.
        of_weights = phase == "backward" and all(key in self.first["gradients"] for key in outputs)
        if of_weights and ("matmul" in operation or self.read_for_weights.issuperset(inputs)):
            facts["for"] = "weights"
            self.read_for_weights.update(inputs)
        if phase == "forward":
            self.made.update(outputs)
        for side in ("reads", "writes"):
            facts[side] = [self.tensor([each[side][i] for each in at_once], what)
                           for i in range(len(operation[side]))]
        return present(**facts)

    def sizes(self, at_once, of, what):
        return {side: size_text([each[of][side] for each in at_once], self.options, what) for side in at_once[0][of]}

    def follow(self, inputs, outputs, division):
        roles = [self.made_of.get(key) for key in inputs]
        for key in outputs:
            if key in self.roles:
                continue
            if inputs and None not in roles and len(set(roles)) == 1:
                self.made_of[key] = roles[0]
                division = self.division_of(roles[0])
            self.division[key] = division

    def kept(self, operations):
        """Tensors that forward saves, and those that backward makes and the weights' gradients read."""
        first = self.first
        skip = set(self.roles) | first["outside"]
        saved = [key for key in dict.fromkeys(first["trace"].saved)
                 if key not in skip and (key in self.made or key in first["input"])]
        uses = {key: set() for key in saved}
        later = {}
        for operation in operations["backward"]:
            weights = operation.get("for") == "weights"
            for index in operation["reads"]:
                key = self.tensors[index]["storage"]
                if key in uses:
                    uses[key].add("weights" if weights else "input")
                if weights and key not in uses and key not in skip and key not in first["gradients"]:
                    later[key] = True
        among = self.gathered(operations["backward"])
        kept = [dict(self.storage(key, among), until="both" if len(uses[key]) == 2 else (uses[key] or {"input"}).pop())
                for key in saved]
        return kept, [self.storage(key, among) for key in later]

    def gathered(self, operations):
        """Whole values that a divided matrix's gradient reads: gathered, or sent to experts."""
        return {self.tensors[i]["storage"]: "experts" if operation.get("experts") else "tensor"
                for operation in operations if operation.get("for") == "weights" and operation.get("divided")
                for i in operation["reads"] if "division" not in self.tensors[i]}

    def storage(self, key, gathered):
        at_once = [each["trace"].whole[key] for each in self.traces]
        elements = size_text([each[0] for each in at_once], self.options, "a saved tensor")
        return present(storage=key, elements=elements, type=at_once[0][1], division=self.division.get(key),
                       gathered=gathered.get(key))

    def whole(self):
        operations = {}
        for phase in ("forward", "backward"):
            count = same([len(each["trace"].operations[phase]) for each in self.traces], "the number of operations")
            operations[phase] = [self.describe(phase, i) for i in range(count)]
        if self.division.get(self.first["output"]):
            raise BadInput("ranks divide the output: name what makes it with --rows, or what stands before with --whole")
        kept, gradients = self.kept(operations)
        parameters = [present(name=name, shape=self.shapes[name], division=self.roles[key], heads=self.heads.get(name))
                      for name, key in self.first["parameters"].items()]
        return {"parameters": parameters, "tensors": self.tensors, **operations, "saved": kept, "gradients": gradients}


def find_ends(model, path, blocks, hidden, options):
    """Embedding, output, positions and last norm, by their modules and shapes. Positions have a row for every token."""
    inside = {id(p) for block in blocks for p in block.parameters()}
    held = {f"{name}.{key}".lstrip("."): (module, p) for name, module in model.named_modules()
            for key, p in module.named_parameters(recurse=False) if id(p) not in inside}
    tables = {key: p for key, (module, p) in held.items() if isinstance(module, torch.nn.Embedding) and p.shape[1] == hidden}
    if not tables:
        raise BadInput(f"the model has no torch.nn.Embedding of width {hidden} beside {path}")
    name, table = max(tables.items(), key=lambda each: each[1].shape[0])
    rows = table.shape[0]
    outputs = [key for key, (_, p) in held.items() if p.shape == (rows, hidden) and key not in tables]
    if not outputs:
        raise BadInput(f"the model has no output matrix of {rows} x {hidden} (its embedding is {name})")
    tied = any(held[key][1] is table for key in outputs)
    left = {key: each for key, each in held.items() if each[1] is not table and (tied or key != outputs[0])}
    positions = [key for key, (module, p) in left.items() if p.dim() > 1 and options.seq <= p.shape[-2] == p.numel() // hidden
                 and (key in tables or not type(module).__module__.startswith("torch.nn"))]
    most = left.pop(positions[0])[1].shape[-2] if positions else 0
    if positions and most < options.longest:
        raise BadInput(f"{positions[0]} has {most} rows, fewer than the {options.longest} tokens of --longest")
    norms = [key for key, (_, p) in left.items() if p.dim() == 1 and p.numel() == hidden]
    return {"hidden_size": hidden, "vocab_size": rows, "tied": tied, "max_positions": most,
            "norm": "LayerNorm" if len(norms) > 1 else "RMSNorm",
            "other_parameters": {key: list(p.shape) for key, (_, p) in left.items() if key not in norms}}


def describe(options):
    arguments = split_arguments(options.arguments)
    for pattern in ("columns", "rows", "experts", "whole"):
        with told(f"--{pattern} {getattr(options, pattern)}"):
            re.compile(getattr(options, pattern))
    torch.nn.functional.scaled_dot_product_attention = attend  # before code of others takes it by name
    make_inputs = load(options.inputs) if options.inputs else None
    model = build(options.model, arguments, getattr(torch, options.type))
    path, blocks = find_blocks(model, options.blocks)
    calls = []
    for batch, seq in ((options.batch, options.seq), (2 * options.batch, options.seq), (options.batch, options.longest)):
        with told(f"the forward of {batch} x {seq} tokens (--batch, --seq, --longest)"), OnMeta():
            inputs = make_inputs(batch, seq) if make_inputs else (torch.zeros(batch, seq, dtype=torch.long),)
            calls.append(arguments_of_blocks(model, blocks, inputs))
    kinds, layers, hidden = {}, [], 0
    for i, block in enumerate(blocks):
        with told(f"{path}.{i}"):
            traces = [trace_block(block, *of_size[i]) for of_size in calls]
            one = Description(block, traces, options).whole()
        hidden = traces[0]["width"]
        known = json.dumps(one)
        kinds.setdefault(known, {"name": f"{path}.{i}", "kind": type(block).__name__, **one})
        layers.append(list(kinds).index(known))
    return {"schema": "pipesim-trace/1", "model": options.model, "arguments": {k: str(v) for k, v in arguments.items()},
            "torch": torch.__version__, "type": options.type, "sequences": [options.seq, options.longest],
            "parameters": sum(p.numel() for p in model.parameters()),
            **find_ends(model, path, blocks, hidden, options), "layers": layers, "blocks": list(kinds.values())}


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="FILE.py:FUNCTION, MODULE:FUNCTION or hf:NAME")
    parser.add_argument("arguments", nargs="*", metavar="NAME=value", help="arguments of the function or the config")
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    parser.add_argument("--inputs", metavar="FILE.py:FUNCTION", help="makes forward's arguments for (batch, seq): a tuple or a dict")
    parser.add_argument("--blocks", metavar="NAME", help="the list of blocks, such as model.layers")
    parser.add_argument("--batch", type=int, default=2, help="sequences of the first trace, which must go twofold too (2)")
    parser.add_argument("--seq", type=int, default=512, help="tokens of the shortest sequence to be planned (512)")
    parser.add_argument("--longest", type=int, help="tokens of the longest one (8 times --seq)")
    parser.add_argument("--type", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--columns", default=COLUMNS, metavar="PATTERN", help="matrices divided by their outputs")
    parser.add_argument("--rows", default=ROWS, metavar="PATTERN", help="matrices divided by their inputs")
    parser.add_argument("--experts", default=EXPERTS, metavar="PATTERN", help="modules that hold experts")
    parser.add_argument("--whole", default=r"(?!)", metavar="PATTERN", help="matrices that no rank divides")
    options = parser.parse_intermixed_args(words)
    options.longest = options.longest or 8 * options.seq
    if options.batch < 1 or not 0 < options.seq < options.longest:
        parser.error("expected --batch of 1 or more, --seq of 1 or more, and --longest above it")
    return options


def text_of(value):
    """JSON with a line for each map of a list."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(text_of(each) for each in value) + "\n]"
    if isinstance(value, dict) and ("blocks" in value or "tensors" in value):
        return "{" + ",\n".join(f"{json.dumps(key)}: {text_of(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


def main(words):
    options = parse(words)
    try:
        document = describe(options)
        with open(options.output + ".part", "w") as file:
            file.write(text_of(document) + "\n")
        os.replace(options.output + ".part", options.output)
    except (BadInput, OSError) as error:
        print(f"trace_torch.py: {error}", file=sys.stderr)
        return 2
    print(f"wrote {options.output}: {document['parameters'] / 1e9:.2f}B parameters, {len(document['layers'])} blocks, "
          f"different: {len(document['blocks'])}")
    for block in document["blocks"]:
        print(f"{block['name']} ({block['kind']}), divided by ranks:")
        for division in ("columns", "rows", "experts-columns", "experts-rows", "whole"):
            named = [p["name"] for p in block["parameters"] if p["division"] == division and len(p["shape"]) > 1]
            if named:
                print(f"  {division:16}{', '.join(named)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
