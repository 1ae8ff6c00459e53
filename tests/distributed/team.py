"""Teams of processes with gloo between them, which live for a whole session of tests.

Loading torch takes seconds and forking does not: one process loads it, and teams are its children.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Listener, wait
from pathlib import Path

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCH_CPP_LOG_LEVEL": "ERROR"}
LIMIT = 900
"""Seconds after which a question counts as lost."""


class Lost(Exception):
    """A rank failed, died, or did not answer in time."""


class Nursery:
    """The process that forks teams."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="team")
        self._count = 0
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
        address = f"{self.folder}/nursery"
        with Listener(address, authkey=b"condgrad") as listener:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "distributed.nursery", address], env=environment
            )
            self._requests = listener.accept()

    def team(self, size, *, timeout=600, joined=True, **environment):
        """A team of so many ranks; `joined` says whether they are in a process group yet."""
        self._count += 1
        address = f"{self.folder}/team{self._count}"
        store = f"{self.folder}/store{self._count}" if joined else None
        with Listener(address, backlog=size, authkey=b"condgrad") as listener:
            self._requests.send(
                {
                    "size": size,
                    "address": address,
                    "store": store,
                    "timeout": timeout,
                    "environment": {**ENVIRONMENT, **environment},
                }
            )
            found = [listener.accept() for _ in range(size)]
        ranks = {connection.recv(): connection for connection in found}
        return Team([ranks[rank] for rank in range(size)])

    def lone_team(self, size):
        """A team whose ranks know of each other what a launcher would tell them."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        return self.team(
            size,
            joined=False,
            WORLD_SIZE=str(size),
            LOCAL_WORLD_SIZE=str(size),
            GROUP_RANK="0",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            TORCHELASTIC_RUN_ID="tests",
        )

    def close(self):
        self._requests.close()
        self._process.wait(LIMIT)


class Team:
    """Ranks that wait for questions."""

    def __init__(self, connections):
        self._connections = connections
        self.alive = True

    def ask(self, question, *args):
        """What each rank answers: `question` is a function that they can import."""
        answers, failures = self.outcomes(question, *args, patient=False)
        if failures:
            self.close()
            raise Lost("\n".join(f"rank {rank}: {failure}" for rank, failure in failures.items()))
        return answers

    def outcomes(self, question, *args, patient=True):
        """What the ranks answer, None for those that fail; and how those failed, by rank.

        Without patience the first failure ends it: the others may wait for that rank for long.
        """
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.send((question, args))
        answers, failures = [None] * len(self._connections), {}
        waiting = {connection: rank for rank, connection in enumerate(self._connections)}
        deadline = time.monotonic() + LIMIT
        while waiting and (patient or not failures):
            ready = wait(list(waiting), deadline - time.monotonic())
            if not ready:
                failures |= dict.fromkeys(waiting.values(), "no answer in time")
                break
            for connection in ready:
                rank = waiting.pop(connection)
                try:
                    fine, answer = connection.recv()
                except (EOFError, OSError):
                    fine, answer = False, "died"
                if fine:
                    answers[rank] = answer
                else:
                    failures[rank] = answer
        return answers, failures

    def close(self):
        """Let the ranks go."""
        self.alive = False
        for connection in self._connections:
            connection.close()
