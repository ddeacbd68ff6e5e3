"""What a folder of results was computed from, and how long that took: told on plots and page."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

FILENAME = "provenance.json"


@dataclass(frozen=True)
class Provenance:
    """The population, whether its people are made up, and the time of each experiment.

    On a machine that does other things too, `computing` tells more than `seconds`.
    """

    population: str = "unknown population"
    synthetic: bool = True
    rows: int = 0
    trials: int = 0
    workers: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    computing: Mapping[str, float] = field(default_factory=dict)  # of all processes together

    @classmethod
    def read(cls, folder: Path) -> "Provenance":
        """As written by an earlier run; unknown facts if there was none."""
        path = folder / FILENAME
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()

    def write(self, folder: Path) -> None:
        """Beside the CSV."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        (folder / FILENAME).write_text(text, encoding="utf-8")

    def took(self, name: str, seconds: float, computing: float) -> "Provenance":
        """With the time of one experiment: by the clock, and of the processors."""
        return replace(
            self,
            seconds={**self.seconds, name: round(seconds, 1)},
            computing={**self.computing, name: round(computing, 1)},
        )

    @property
    def title(self) -> str:
        """For plots: so that nobody takes made-up people for real ones."""
        return f"{self.population}{' · SYNTHETIC people' if self.synthetic else ''}"
