"""What a release shows to people: the picture grid, the data card and the report page. All of it is post-processing."""

from __future__ import annotations

from limbeck.report.card import data_card
from limbeck.report.page import report_page
from limbeck.report.pictures import image_grid, png_bytes, release_grid, save_png, table_grid

__all__ = ["data_card", "image_grid", "png_bytes", "release_grid", "report_page", "save_png", "table_grid"]
