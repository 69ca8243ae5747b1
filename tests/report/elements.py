"""What stands on a page: its elements, and the users among whom one chooses."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote


def unmarked(text):
    """A page without what isolates names."""
    return re.sub("</?bdi>", "", text)


class Elements(HTMLParser):
    """The elements of a page, with their attributes and the text in them."""

    VOID = ("meta", "link", "img", "br", "hr", "input", "path", "line", "rect", "circle", "use")

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        element = {
            "tag": tag,
            "text": "",
            "inside": [one["tag"] for one in self._open],
            **dict(attrs),
        }
        self.found.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        while self._open and self._open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, *tags):
        return [one for one in self.found if one["tag"] in tags]


def people_of(text):
    """What a page shows of each user among whom one chooses."""
    elements = Elements(text)
    (data,) = [one for one in elements.all("script") if one.get("type") == "application/json"]
    data = json.loads(data["text"])
    titles, options = data["titles"], [one["text"] for one in elements.all("option")]
    segments = options[options.index("all") + 1 :] if "all" in options else []
    for person in data["people"]:
        person["user"] = unquote(person["key"].removeprefix("user="))
        person["segments"] = [segments[place] for place in person["segments"]]
        for name in ("history", "missed"):
            person[name] = [titles[place] for place in person[name]]
        sides = zip(*person["rows"], strict=True)
        person["lists"] = [
            [
                {"title": titles[place], "mark": (*more, "")[0], "look": (*more, "", "")[1]}
                for place, *more in filter(None, side)
            ]
            for side in sides
        ]
        person["relevant"] = int(re.search(r"(\d+) relevant", person["note"])[1])
    return data["people"]


def listed(person):
    """The titles of both lists."""
    return [cell["title"] for cells in person["lists"] for cell in cells]
