"""Where these tests run in the simulator, the threads of a block take turns."""

import sys
from pathlib import Path

from sparsecast.devices.gpu.launching import SIMULATED

if SIMULATED:
    sys.path.insert(0, str(Path(__file__).parent))
    import simulator_in_turn  # noqa: F401
