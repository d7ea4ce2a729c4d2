#!/usr/bin/env python3
"""Checks by its JSON Schema every scenario, sweep, description and catalogue that is shipped.

  check_files.py PIPESIM ROOT

Ends with 77 where Python has no jsonschema or PyYAML. Slips of the pen must be found too.
"""
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError:
    sys.exit(77)

PIPESIM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SLIPS = [("batch", "num_microbatch", 8), ("cost", "forward", "18.5"), ("parallel", "pipeline_model_parallel_size", "four")]


def validator(name):
    done = subprocess.run([PIPESIM, "schema", name], stdout=subprocess.PIPE, check=True)
    schema = json.loads(done.stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def faults(check, path):
    return [f"{path}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in check.iter_errors(yaml.safe_load(path.read_text()))]


def main():
    checks = {name: validator(name) for name in ["scenario", "sweep", "description", "models", "gpus", "clusters"]}
    files = [(checks["sweep" if "\nsweep:" in path.read_text() else "scenario"], path)
             for path in sorted((ROOT / "scenarios").rglob("*.yaml")) if "schedule:" in path.read_text()]
    files += [(checks["description"], path) for path in sorted((ROOT / "schedules/descriptions").glob("*.yaml"))]
    files += [(checks[name], ROOT / f"models/catalog/{name}.yaml") for name in ["models", "gpus", "clusters"]]
    found = [fault for check, path in files for fault in faults(check, path)]
    quickstart = yaml.safe_load((ROOT / "scenarios/quickstart.yaml").read_text())
    for section, key, value in SLIPS:
        slipped = {**quickstart, section: {**quickstart[section], key: value}}
        if checks["scenario"].is_valid(slipped):
            found.append(f"{section}.{key}: {value} is taken")
    print("\n".join(found) if found else f"{len(files)} files are as their schemas say")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
