"""The tests of `openai_graders/`, with the first major version of the client."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from openai_graders.test_graders import *  # noqa: E402, F403
