"""The import process of :mod:`envs.importing.bounded`."""

import sys

from envs.importing.bounded import serve

if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:]))
