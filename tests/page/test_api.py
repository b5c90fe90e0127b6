"""The HTTP interface as a program sees it: two names, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from app import api

NUMBER = {"kind": "regex", "source": "[0-9]{3}-[0-9]{4}", "length": 12, "steps": 3, "block_length": 12}
PROGRAM = """
import json, sys
from gradio_client import Client
url, asked = sys.argv[1], json.loads(sys.argv[2])
client = Client(url, verbose=False)
offered = client.view_api(return_format="dict", print_info=False)
print(json.dumps({"offered": offered, "answers": [client.predict(config, api_name=name) for name, config in asked]}))
"""


@pytest.mark.page
@pytest.mark.filterwarnings("default")
def test_a_program_is_offered_a_run_and_a_diagnosis_and_gets_them(url: str) -> None:
    short = {**NUMBER, "length": 6, "steps": 6, "block_length": 6}
    asked = json.dumps([["/run", NUMBER], ["/diagnose", short]])
    # Another process: a client leaves its sockets to the end of its own.
    done = subprocess.run([sys.executable, "-c", PROGRAM, url, asked], capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert set(told["offered"]["named_endpoints"]) == {"/run", "/diagnose"}
    assert not told["offered"]["unnamed_endpoints"]
    made, said = told["answers"]
    assert made["accepted"]
    assert re.fullmatch(str(NUMBER["source"]), made["text"])
    assert len(made["log_partition"]) == made["steps"] == 3
    assert said["findings"][0]["code"] == "length"
    assert said["findings"][0]["remedies"][0]["changes"]["length"] == 8


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        {"nonsense": 1},
        {"length": "x"},
        {"length": -1},
        {"kind": "regex", "source": "("},
        {"kind": {}, "source": 3},
        {"kind": "regex", "source": ["a"]},
        {"kind": "regex", "source": "a", "length": 4096, "block_length": 4096, "steps": 4096},
        {"pins": [[0]]},
        {"pins": "x"},
        {"reading": [["depth", {}]]},
        {"seed": 1.5},
        {"model": "no such model", "source": "a"},
    ],
)
def test_whatever_a_stranger_asks_is_answered(config: object) -> None:
    said = api.run(config)  # type: ignore[arg-type]
    assert said["error"]["problem"]
    assert said["error"]["remedy"]
    said = api.diagnose(config)  # type: ignore[arg-type]
    assert "error" in said or said["findings"][0]["severity"] == "error"
