"""An environment for each peer, as the comment at the head of its script asks (PEP 723)."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^# /// script$\s(?P<content>(?:^#(?:| .*)$\s)+)^# ///$", re.MULTILINE)


def metadata(script: Path) -> dict[str, Any]:
    """Read the metadata at the head of a script."""
    block = _BLOCK.search(script.read_text())
    if block is None:
        msg = f"{script} has no script metadata"
        raise ValueError(msg)
    lines = block["content"].splitlines()
    return tomllib.loads("\n".join(line[2:] for line in lines))


def interpreter(script: Path, folder: Path) -> Path:
    """Give the Python of the script's environment, made in ``folder`` if it is not there.

    Raises ``RuntimeError`` with pip's last error if a dependency cannot be installed.
    """
    asked = metadata(script)
    # what uv understands too: a dependency that is not published, but lies beside the script
    local = asked.get("tool", {}).get("uv", {}).get("sources", {})
    published = [name for name in asked["dependencies"] if name not in local]
    editable = [f"--editable={script.parent / source['path']}" for source in local.values()]

    wanted = " ".join([sys.version, *published, *editable])
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:8]
    home = folder / f"{script.stem}-{digest}"
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = home / "installed"
    if not done.exists():
        print(f"installing {', '.join(asked['dependencies'])}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        install = [python, "-m", "pip", "install", "--quiet", *published, *editable]
        ended = subprocess.run(install, capture_output=True, text=True, check=False)
        if ended.returncode:
            errors = [line for line in ended.stderr.splitlines() if line.startswith("ERROR")]
            msg = f"cannot be installed: {(errors or ['pip failed'])[-1]}"
            raise RuntimeError(msg)
        done.touch()
    return python
