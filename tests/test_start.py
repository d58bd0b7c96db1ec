"""The first moments of a command: Ctrl-C while it loads, names that are not UTF-8."""

import os
import subprocess
import sys

import pytest

INTERRUPT = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "nodejepa.cli.study":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
sys.argv = ["nodejepa", "methods"]
from nodejepa.__main__ import main
main()
"""


@pytest.mark.slow
def test_ctrl_c_while_the_command_line_is_loaded_shows_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPT], capture_output=True, text=True)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


def test_a_name_that_is_not_utf8_is_refused_before_the_work(run, tmp_path):
    edges = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")
    with open(edges, "w") as file:
        file.write("a,b\n1,2\n2,3\n")
    err = run.refused("embed-graph", "--edges", edges, "--out", tmp_path / "z.parquet")
    assert "not UTF-8" in err
    assert r"caf\udce9.csv" in err
    assert not (tmp_path / "z.run").exists()


def test_text_that_has_no_utf8_is_written_and_reads_back_as_json(tmp_path):
    import json

    from nodejepa.files import write_json

    name = os.fsdecode(b"caf\xe9 \xc3\xa9.csv")
    write_json(tmp_path / "a.json", {"path": name})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"path": name}
