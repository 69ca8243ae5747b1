"""What a test needs that not every machine has."""

import importlib.util
import os
import shutil

import pytest


def missing():
    """Say what Spark lacks here."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'rankframe[spark]'"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java, which Spark needs: Debian's openjdk-17-jre-headless has it"
    return None


def need_spark():
    """Skip the test with a reason; CI has what Spark needs, or fails."""
    reason = missing()
    if reason and os.environ.get("CI"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
