"""A kubeconfig that several threads read at once, as when a service with several clusters starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.effort import sized

ATTEMPTS = sized(2, 12)
"""How many new processes try it: if the threads prepare the types of the file, two of three crash."""

KUBECONFIG = """
current-context: test
clusters: [{name: test, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {token: secret}}]
"""

READ_IN_THREADS = """
import sys
import threading
from pathlib import Path

import yaml
from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig

start = threading.Barrier(8)
sys.setswitchinterval(1e-6)

def read_when_all_are_ready():
    start.wait()
    read_kubeconfig(Path(sys.argv[1]))

threads = [threading.Thread(target=read_when_all_are_ready) for _ in range(start.parties)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_read_a_kubeconfig_at_once(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    for _ in range(ATTEMPTS):
        subprocess.run([sys.executable, "-c", READ_IN_THREADS, str(file)], check=True, timeout=60)
