"""``python -m benchmarks [name ...]``."""

import sys

from benchmarks.run import main

sys.exit(main())
