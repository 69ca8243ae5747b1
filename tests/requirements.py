"""What a test needs that not every machine has."""

import importlib.util
import os
import shutil

import pytest


def lacking(reason):
    """Skip the test with a reason; with RANKFRAME_ALL=1, what is lacking is a failure."""
    pytest.fail(reason) if os.environ.get("RANKFRAME_ALL") else pytest.skip(reason)


def missing():
    """Say what Spark lacks here."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'rankframe[spark]'"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java, which Spark needs: Debian's openjdk-17-jre-headless has it"
    return None


def need_spark():
    """Skip the test if Spark cannot run."""
    if reason := missing():
        lacking(reason)
