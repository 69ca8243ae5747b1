"""Charts: the frame that a function returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small for any number of users. Colors follow the background of the theme. The
first chart imports Altair.
"""

from rankframe import _rooms

_rooms.open_door(__name__)
