"""``python -m raysim.report FOLDER [FOLDER ...]``: pages of finished or running runs."""

import sys

from raysim.report.run_page import main

if __name__ == "__main__":
    sys.exit(main())
