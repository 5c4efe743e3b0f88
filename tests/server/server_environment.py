# SPDX-License-Identifier: Apache-2.0
"""The environment of tests that run clients from PyPI."""
import os
import subprocess
import sys


def environment(test, name, packages):
    """The folder that the test was given as its first argument; the test goes on in a virtual environment that has the packages, FOLDER/NAME (HUNCH_CLIENTS names
    another folder). Ends it with 77 where they cannot be had."""
    folder = os.path.abspath(sys.argv[1])
    if sys.argv[-1] == "inside":
        sys.argv.pop()
        return folder
    place = os.path.join(os.environ.get("HUNCH_CLIENTS", folder), name)
    python, complete = os.path.join(place, "bin", "python3"), os.path.join(place, "complete")
    have = open(complete).read().split() if os.path.exists(complete) else []
    if have != packages:
        made = subprocess.run([sys.executable, "-m", "venv", place]).returncode == 0 and subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *packages]).returncode == 0
        if not made:
            print("skipped: no %s from PyPI here" % ", ".join(packages))
            sys.exit(77)
        with open(complete, "w") as f:
            f.write("\n".join(packages))
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(subprocess.run([python, test, *sys.argv[1:], "inside"], env=dict(os.environ, PYTHONPATH=here)).returncode)
