"""Attacks on the kernel's more dangerous rooms, and on what holds the jail together."""

from __future__ import annotations

from apps.kernels.attacks.attack import Attack, Layer

ROOMS = (Layer.SECCOMP, Layer.RIGHTS)
PROC = (Layer.ROOT, Layer.LANDLOCK)

KERNEL = (
    Attack("kernel", "bpf", "return call(321, 0, buffer(64), 64)", ROOMS),
    Attack("kernel", "perf events", "return call(298, perf_attributes(), 0, -1, -1, 0)", (Layer.SECCOMP,)),
    Attack("kernel", "userfaultfd", "return call(323, 1)", (Layer.SECCOMP,)),
    Attack("kernel", "keys", "return call(250, 0, -3, 1)", (Layer.SECCOMP,)),
    Attack("kernel", "a user namespace", "return call(272, 0x10000000)", (Layer.SECCOMP,)),
    Attack("kernel", "a user namespace by clone", "return call(56, 0x10000011, 0, 0, 0, 0) or os._exit(0)", (Layer.SECCOMP,)),
    Attack("kernel", "a mount namespace", "return call(272, 0x20000)", ROOMS),
    Attack("kernel", "enter another namespace", "return call(308, os.open('/proc/self/ns/net', os.O_RDONLY), 0)", ROOMS),
    Attack("kernel", "mount", "return call(165, cstring('x'), cstring('/tmp'), cstring('tmpfs'), 0, 0)", ROOMS),
    Attack("kernel", "mount the new way", "return call(430, cstring('tmpfs'), 0)", ROOMS),
    Attack("kernel", "make mounts writable", "return call(442, -100, cstring('/'), 0x8000, buffer(32), 32)", ROOMS),
    Attack("kernel", "unmount", "return call(166, cstring('/tmp'), 2)", ROOMS),
    Attack("kernel", "pivot the root", "return call(155, cstring('.'), cstring('.'))", ROOMS),
    Attack("kernel", "load a module", "return call(313, 0, cstring(''), 0)", ROOMS),
    Attack("kernel", "load a kernel", "return call(320, -1, -1, 0, 0, 0)", ROOMS),
    Attack("kernel", "reboot", "return call(169, 0, 0, 0, 0)", ROOMS),  # with numbers that no kernel takes for an order
    Attack("kernel", "set the clock", "now = time.clock_gettime(0)\nreturn time.clock_settime(0, now)", ROOMS),
    Attack("kernel", "bend the clock", "return call(159, buffer(208))", ROOMS),
    Attack("kernel", "rename the machine", "return socket.sethostname(os.uname().nodename)", ROOMS),
    Attack("kernel", "read the kernel's log", "return call(103, 3, buffer(64), 64)", ROOMS),
    Attack("kernel", "I/O ports", "return call(172, 3)", ROOMS),
    Attack("kernel", "other addresses (personality)", "return call(135, 0x0040000)", (Layer.SECCOMP,)),
    Attack("kernel", "system V shared memory", "return call(29, 0, 4096, 0o1600)", (Layer.SECCOMP,)),
    Attack("kernel", "the x32 calls", "return call(0x40000000 + 41, 2, 1, 0)", (Layer.SECCOMP,)),
    Attack("kernel", "sysrq", "return open('/proc/sysrq-trigger', 'w')", PROC),
    Attack("kernel", "kernel settings", "return open('/proc/sys/kernel/core_pattern', 'w')", PROC),
    Attack("kernel", "its own out-of-memory score", "return open('/proc/self/oom_score_adj', 'w').write('-1000')", PROC),
    Attack("kernel", "code that was not there before",
           "return mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)", (Layer.SECCOMP,), judged_only=True),
    Attack("kernel", "make data code",
           "place = ctypes.addressof(buffer(8192)) & ~4095\nreturn call(10, place, 4096, 5)", (Layer.SECCOMP,),
           judged_only=True),
    Attack("kernel", "move pages to where others lay",
           "place = ctypes.addressof(ctypes.c_char.from_buffer(mmap.mmap(-1, 8192)))\nreturn call(25, place, 4096, 8192, 1)",
           (Layer.SECCOMP,), judged_only=True),
    Attack("kernel", "take back a descriptor that was sent away",
           "one, other = socket.socketpair()\nreturn other.recvmsg(1, 64, socket.MSG_DONTWAIT)", (Layer.SECCOMP,),
           judged_only=True),
    Attack("kernel", "name memory as a library's", "return call(157, 0x53564D41, 0, buffer(4096), 4096, cstring('libm.so.6'))",
           (Layer.SECCOMP,)),
    Attack("privileges", "become root", "return os.setuid(0) or os.setresuid(0, 0, 0)", ROOMS),
    Attack("privileges", "take capabilities back",
           "return call(126, struct.pack('Ii', 0x20080522, 0), struct.pack('6I', *[0xffffffff] * 6))", ROOMS),
    Attack("privileges", "a set-user-id program's rights",
           "assert 'NoNewPrivs:\\t1' not in open('/proc/self/status').read(), 'no program gives new privileges'\n"
           "return 'new privileges can be had'", (Layer.RIGHTS, Layer.ROOT)),
    Attack("privileges", "raise its limits",
           "most = [(which, resource.getrlimit(which)[1] + 1) for which in (7, 1, 9)]\n"
           "return [resource.setrlimit(which, (more, more)) for which, more in most]",
           (Layer.RIGHTS,)),
    Attack("privileges", "have a core dumped", "return resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", (Layer.SECCOMP,)),
    Attack("privileges", "a higher priority", "return os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))", ROOMS),
    Attack("privileges", "filter calls behind the judge's back", "return prctl(22, 1)", (Layer.SECCOMP,)),
)  # fmt: skip
