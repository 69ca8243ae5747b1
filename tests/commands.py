"""Commands in tests, run in this process."""

import contextlib
import io

from rankframe._command.main import main


def said_by(words):
    """Run a command that must fail; return its one line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words.split() if isinstance(words, str) else words)
        except SystemExit as stopped:
            code = stopped.code
    assert (code, out.getvalue(), err.getvalue().count("\n")) == (2, "", 1), err.getvalue()
    return err.getvalue().removeprefix("rankframe: error: ").rstrip("\n")
