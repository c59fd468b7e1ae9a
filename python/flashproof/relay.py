"""What `flashproof check --exec` starts: it passes lines between its standard streams and the Python process that holds the kernel."""

import socket
import sys


def main() -> None:
    """Connect to 127.0.0.1 at the port that is given, say the word that is given, and pass lines both ways until one side ends."""
    port, word = sys.argv[1:3]
    with (
        socket.create_connection(("127.0.0.1", int(port))) as connection,
        connection.makefile("rw", encoding="utf-8") as kernel,
    ):
        kernel.write(word + "\n")
        kernel.flush()
        for line in sys.stdin:
            kernel.write(line)
            kernel.flush()
            answer = kernel.readline()
            if answer == "":
                sys.exit("the process of the kernel has ended")
            sys.stdout.write(answer)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
