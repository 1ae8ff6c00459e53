"""Imports everything once, then forks teams of ranks that answer what the tests ask them.

Run as `python -m distributed.nursery ADDRESS`; `team.py` holds the other end.
"""

import datetime
import multiprocessing
import os
import sys
import traceback
import warnings
from multiprocessing.connection import Client

import torch
import torch.distributed as dist
import torch.distributed.checkpoint
import torch.distributed.checkpoint.state_dict
import torch.distributed.fsdp
import torch.distributed.tensor
import torch.distributed.tensor.debug
import torch.distributed.tensor.parallel

import condgrad
import distributed.layouts
import optim.cases

_PRELOADED = (condgrad, optim.cases, distributed.layouts)


def serve(address):
    """Fork a team for every request, until the tests hang up."""
    with Client(address, authkey=b"condgrad") as requests:
        while True:
            try:
                request = requests.recv()
            except EOFError:
                return
            fork = multiprocessing.get_context("fork")
            for rank in range(request["size"]):
                fork.Process(target=live, args=(rank, request), daemon=True).start()


def live(rank, request):
    """Answer questions as one rank of a team, until the tests hang up."""
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    os.environ.update(request["environment"], RANK=str(rank), LOCAL_RANK=str(rank))
    with Client(request["address"], authkey=b"condgrad") as questions:
        questions.send(rank)
        if request["store"]:
            dist.init_process_group(
                "gloo",
                init_method=f"file://{request['store']}",
                rank=rank,
                world_size=request["size"],
                timeout=datetime.timedelta(seconds=request["timeout"]),
            )
        while True:
            try:
                question, args = questions.recv()
            except EOFError:
                os._exit(0)
            try:
                answer = True, question(*args)
            except BaseException:
                answer = False, traceback.format_exc()
            questions.send(answer)


if __name__ == "__main__":
    serve(sys.argv[1])
