#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUTPUT INPUT...: text files as constants of C; completion.bash becomes `const char completion_bash[]`."""
import pathlib
import re
import sys


def quoted(line):
    return '\t"' + line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("?", "\\?") + '\\n"'


def main():
    output, *inputs = map(pathlib.Path, sys.argv[1:])
    parts = []
    for path in inputs:
        lines = "\n".join(map(quoted, path.read_text().splitlines()))
        parts.append(f"const char {re.sub('[^a-z0-9]', '_', path.name)}[] =\n{lines};\n")
    output.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
