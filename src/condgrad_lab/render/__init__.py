"""Records shown: figures, the report page, the documentation page."""

from condgrad_lab.render._html import report
from condgrad_lab.render._markdown import markdown
from condgrad_lab.render._save import save

__all__ = ["markdown", "report", "save"]
