"""Tests of estimators share one small generated population: `joint_people`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
