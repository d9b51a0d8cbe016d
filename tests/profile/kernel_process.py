"""The process that the profiler's tests look at: loads a kernel library and calls it when told. No torch, no PRAGMA.

    python kernel_process.py LIBRARY

The library gives `setup()` and `call()`. Commands come as lines on stdin: `call N` answers with seconds, `threads K` with
`ok`.
"""

import ctypes
import sys
import time


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    openmp = ctypes.CDLL("libgomp.so.1")
    library.setup()
    library.call()
    print("ready", flush=True)
    for line in sys.stdin:
        command, number = line.split()
        if command == "threads":
            openmp.omp_set_num_threads(int(number))
            print("ok", flush=True)
        elif command == "call":
            call, n = library.call, int(number)
            start = time.perf_counter()
            for _ in range(n):
                call()
            print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
