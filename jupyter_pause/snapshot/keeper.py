# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The small process of CRIU's self-test: it holds a random token in its memory only and tells it when it is asked.

Run as a script in an empty folder, standard library only. `mark` gets the token's SHA-256; once there is a file `ask`,
`answer` gets the token itself. Only the process that wrote `mark`, or a restored one, can do that. A thread runs beside
it, as in every kernel.
"""

import hashlib
import os
import threading
import time


def write(name: str, data: bytes) -> None:
    """Write a file that appears complete or not at all."""
    with open(name + ".new", "wb") as file:
        file.write(data)
    os.rename(name + ".new", name)


def main() -> None:
    """Keep the token until the process is ended."""
    token = os.urandom(32)
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    write("mark", hashlib.sha256(token).hexdigest().encode())
    while not os.path.exists("ask"):
        time.sleep(0.02)
    write("answer", token)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
