"""Altair, which the first chart imports: 0.4 seconds."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from altair import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        import altair

        return getattr(altair, name)
