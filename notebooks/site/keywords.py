"""Lists the keywords of ``**options: Unpack[Options]`` where a reference shows a function."""

import re
from typing import Any

import griffe


class UnpackedKeywords(griffe.Extension):
    """Puts the keys of the TypedDict, with the text below each, after ``**options``."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Unpack the last parameter; if its text names keys, as ``user=``, only these."""
        if func.docstring:  # a role is of Sphinx
            func.docstring.value = func.docstring.value.replace(":func:", "")
        *_, last = [None, *func.parameters]
        if last is None or not str(last.annotation).startswith("Unpack[") or not func.docstring:
            return
        keys = func.modules_collection[last.annotation.slice.canonical_path].attributes
        for section in func.docstring.parsed:
            if section.kind is griffe.DocstringSectionKind.parameters:
                names = re.findall(r"``(\w+)=``", section.value[-1].description) or [*keys]
                section.value += [
                    griffe.DocstringParameter(
                        name,
                        annotation=keys[name].annotation,
                        description=getattr(keys[name].docstring, "value", ""),
                        value="…",
                    )
                    for name in names
                ]
