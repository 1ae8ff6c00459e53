"""Which runs are missing, about how long they take, and running them side by side."""

from condgrad_lab.environment import cores
from condgrad_lab.queue._plan import Plan, plan
from condgrad_lab.queue._pool import execute
from condgrad_lab.queue._work import Event, Listener, Settings

__all__ = ["Event", "Listener", "Plan", "Settings", "cores", "execute", "plan"]
