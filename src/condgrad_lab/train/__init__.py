"""From a run to its record: the only training loop of the laboratory."""

from condgrad_lab.train._loop import train
from condgrad_lab.train._probe import probe
from condgrad_lab.train._samples import load
from condgrad_lab.train._speed import Speed
from condgrad_lab.train._team import ALONE, Team, expected, joined
from condgrad_lab.train._trial import Trial

__all__ = ["ALONE", "Speed", "Team", "Trial", "expected", "joined", "load", "probe", "train"]
