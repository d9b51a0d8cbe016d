"""System-call filters in two phases, as hand-made BPF for x86-64.

`build` closes what no compiler or loader needs: networks, namespaces, tracing, other processes' memory, signals by
descriptor, programs in anonymous memory, the kernel's more dangerous rooms. `judged` also closes exec, fork, and opening
anything for writing. A refused call gets EPERM, so that a library that merely tries goes on.

The second filter is put on from inside, by an interpreter in which foreign code has run. Exec, fork, new code, pages that move
and descriptors that come are therefore also asked of the keeper, outside (`watch_starts`): it says yes in the build phase and
no afterwards.
"""

from __future__ import annotations

import ctypes
import struct

from apps.kernels.jail.syscalls import SYS_SECCOMP, checked, syscall

ALLOW = 0x7FFF0000
ASK = 0x7FC00000  # SECCOMP_RET_USER_NOTIF
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000
EPERM, EACCES, ENOSYS = 1, 13, 38

AUDIT_ARCH_X86_64 = 0xC000003E
X32_BIT = 0x40000000
CLONE_THREAD = 0x00010000
NEW_NAMESPACES = 0x7E020080
WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE's own bit

THREADS_TOO, NEW_LISTENER = 1, 8  # SECCOMP_FILTER_FLAG_...
LOAD, JUMP_EQUAL, JUMP_SET, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
NUMBER, ARCHITECTURE = 0, 4

# Never needed by a kernel, its compiler or its loader.
CLOSED_ALWAYS = {
    "socket": 41, "connect": 42, "accept": 43, "bind": 49, "listen": 50, "accept4": 288,
    "ptrace": 101, "syslog": 103, "personality": 135, "pivot_root": 155, "chroot": 161, "acct": 163, "mount": 165,
    "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "add_key": 248, "request_key": 249, "keyctl": 250,
    "unshare": 272, "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "kexec_load": 246, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "process_mrelease": 448, "migrate_pages": 256, "move_pages": 279,
    "vhangup": 153, "iopl": 172, "ioperm": 173, "mknod": 133, "mknodat": 259, "shmget": 29, "msgget": 68, "semget": 64,
    "mq_open": 240, "setpriority": 141, "sched_setscheduler": 144, "sched_setattr": 314, "ioprio_set": 251,
    "setuid": 105, "setgid": 106, "setreuid": 113, "setregid": 114, "setresuid": 117,
    "setresgid": 119, "setgroups": 116, "setfsuid": 122, "setfsgid": 123, "capset": 126, "pidfd_send_signal": 424,
    "memfd_create": 319, "memfd_secret": 447, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159,
    "clock_adjtime": 305, "modify_ldt": 154, "uselib": 134, "sysfs": 139, "_sysctl": 156, "lookup_dcookie": 212,
    "io_setup": 206, "io_submit": 209, "sched_setparam": 142, "open_tree_attr": 467,
    # A timer goes on while its process stands still, and may wake it: SIGCONT is a signal like any other.
    "timer_create": 222, "setitimer": 38, "alarm": 37, "timerfd_create": 283,
}  # fmt: skip
# Closed once a runner is judged: new programs, new processes, anything that changes a file.
CLOSED_JUDGED = {
    "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "creat": 85, "truncate": 76, "rename": 82, "mkdir": 83,
    "rmdir": 84, "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "chown": 92, "renameat": 264, "mkdirat": 258,
    "unlinkat": 263, "linkat": 265, "symlinkat": 266, "fchmodat": 268, "fchownat": 260, "renameat2": 316,
    "socketpair": 53, "seccomp": 317,
}  # fmt: skip
STARTS = (57, 58, 59, 322)  # fork, vfork, execve, execveat; clone is looked at more closely
CLONE, CLONE3, OPEN, OPENAT, OPENAT2, PRCTL = 56, 435, 2, 257, 437, 157
CODE = (9, 10, 329)  # mmap, mprotect and pkey_mprotect, where they ask for what may be executed
MOVES = (25, 47, 299)  # mremap; recvmsg and recvmmsg, by which descriptors come
PROT_EXEC = 4
KILL, TKILL, TGKILL, RT_SIGQUEUEINFO, RT_TGSIGQUEUEINFO, PRLIMIT = 62, 200, 234, 129, 297, 302
IOCTL, FCNTL, SETRLIMIT, SCHED_SETAFFINITY, SOCKETPAIR = 16, 72, 160, 203, 53
NOT_STREAM = 0x6  # set in each type of socket but SOCK_STREAM: their ends can send to addresses without connecting
# prctl options that would hide a process from its judge, cut the cord by which it dies with it, or filter without TSYNC.
# PDEATHSIG, DUMPABLE, SECCOMP, SET_MM, CHILD_SUBREAPER, PTRACER; SET_VMA gives anonymous memory names as files have.
CLOSED_PRCTL = (1, 4, 22, 35, 36, 0x59616D61, 0x53564D41)
# Typing into a terminal, and having signals sent to a process of one's choice when a descriptor becomes ready.
CLOSED_IOCTL = (0x5412, 0x541C, 0x8901, 0x8902)  # TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
CLOSED_FCNTL = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
RLIMIT_CORE = 4  # kept at 1 byte: the kernel then neither writes a core nor pipes one to a handler that runs as root


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


class _Filter:
    """A BPF program under construction; jumps are relative to the next instruction."""

    def __init__(self) -> None:
        self.code: list[tuple[int, int, int, int]] = []

    def load(self, offset: int) -> None:
        self.code.append((LOAD, 0, 0, offset))

    def give(self, action: int) -> None:
        self.code.append((RETURN, 0, 0, action))

    def when(self, test: int, value: int, then: int, otherwise: int) -> None:
        self.code.append((test, then, otherwise, value))

    def refuse(self, number: int, error: int = EPERM) -> None:
        """The call of this number fails with `error`."""
        self.when(JUMP_EQUAL, number, 0, 1)
        self.give(ERRNO | error)

    def refuse_flags(self, number: int, argument: int, bits: int, error: int) -> None:
        """The call fails where its argument has any of `bits`; the accumulator holds the number before and after."""
        self.when(JUMP_EQUAL, number, 0, 4)
        self.load(_low_word(argument))
        self.when(JUMP_SET, bits, 0, 1)
        self.give(ERRNO | error)
        self.load(NUMBER)

    def refuse_value(self, number: int, argument: int, value: int) -> None:
        """The call fails where its argument equals `value`."""
        self.when(JUMP_EQUAL, number, 0, 4)
        self.load(_low_word(argument))
        self.when(JUMP_EQUAL, value, 0, 1)
        self.give(ERRNO | EPERM)
        self.load(NUMBER)

    def only_value(self, number: int, argument: int, allowed: tuple[int, ...]) -> None:
        """The call fails unless its argument is one of `allowed`."""
        count = len(allowed)
        self.when(JUMP_EQUAL, number, 0, count + 3)
        self.load(_low_word(argument))
        for i, value in enumerate(allowed):
            self.when(JUMP_EQUAL, value, count - i, 0)
        self.give(ERRNO | EPERM)
        self.load(NUMBER)

    def install(self, flags: int = THREADS_TOO) -> int:
        """Put the filter over every thread of this process, for good; the listener's descriptor where one is asked for."""
        packed = b"".join(struct.pack("HBBI", *instruction) for instruction in self.code)
        memory = ctypes.create_string_buffer(packed, len(packed))
        program = _Program(len(self.code), ctypes.cast(memory, ctypes.c_void_p))
        return checked(syscall(SYS_SECCOMP, 1, flags, ctypes.byref(program)), "seccomp")


def _low_word(argument: int) -> int:
    return 16 + 8 * argument


def _start() -> _Filter:
    wanted = _Filter()
    wanted.load(ARCHITECTURE)
    wanted.when(JUMP_EQUAL, AUDIT_ARCH_X86_64, 1, 0)
    wanted.give(KILL_PROCESS)
    wanted.load(NUMBER)
    wanted.when(JUMP_AT_LEAST, X32_BIT, 0, 1)
    wanted.give(ERRNO | EPERM)
    wanted.refuse(CLONE3, ENOSYS)  # its flags lie in memory, where a filter can't look; libraries fall back to clone
    return wanted


def close_dangerous(own_pid: int | None) -> None:
    """The filter of the build phase. Without a process namespace, `own_pid` is the only one that may be signalled."""
    wanted = _start()
    for number in CLOSED_ALWAYS.values():
        wanted.refuse(number)
    wanted.refuse_flags(CLONE, 0, NEW_NAMESPACES, EPERM)
    closed = ((PRCTL, 0, CLOSED_PRCTL), (IOCTL, 1, CLOSED_IOCTL), (FCNTL, 1, CLOSED_FCNTL))
    for number, argument, values in closed:
        for value in values:
            wanted.refuse_value(number, argument, value)
    wanted.refuse_flags(SOCKETPAIR, 1, NOT_STREAM, EPERM)
    wanted.refuse_value(SETRLIMIT, 0, RLIMIT_CORE)
    wanted.refuse_value(PRLIMIT, 1, RLIMIT_CORE)
    if own_pid is not None:
        for number in (KILL, TGKILL, RT_SIGQUEUEINFO, RT_TGSIGQUEUEINFO):
            wanted.only_value(number, 0, (own_pid, 0))
        wanted.refuse(TKILL)
        for number in (PRLIMIT, SCHED_SETAFFINITY):
            wanted.only_value(number, 0, (own_pid, 0))
    wanted.give(ALLOW)
    wanted.install()


def watch_starts() -> int | None:
    """Have every exec, every new process and all new code asked of whoever holds the descriptor this gives; None where that
    can't be. So are pages that move elsewhere, and descriptors that come.

    If the holder dies, such calls fail (ENOSYS). Threads are not asked for.
    """
    wanted = _start()
    for number in (*STARTS, *MOVES):
        wanted.when(JUMP_EQUAL, number, 0, 1)
        wanted.give(ASK)
    for number in CODE:
        wanted.when(JUMP_EQUAL, number, 0, 4)
        wanted.load(_low_word(2))
        wanted.when(JUMP_SET, PROT_EXEC, 0, 1)
        wanted.give(ASK)
        wanted.load(NUMBER)
    wanted.when(JUMP_EQUAL, CLONE, 0, 3)
    wanted.load(_low_word(0))
    wanted.when(JUMP_SET, CLONE_THREAD, 1, 0)
    wanted.give(ASK)
    wanted.give(ALLOW)
    try:
        return wanted.install(NEW_LISTENER)
    except OSError:
        return None


def close_building(*, exec_too: bool = True) -> None:
    """The filter of the judged phase, on top of the first: no exec, no new process, nothing written to a file.

    Nor any code that was not there before, nor pages moved to where others lay: where a sample hit is then the code that ran.
    Descriptors that were sent away before may not come back.

    `exec_too` false leaves exec open, for a process that has yet to become the program it was started for.
    """
    wanted = _start()
    for name, number in CLOSED_JUDGED.items():
        if exec_too or name != "execve":
            wanted.refuse(number)
    wanted.when(JUMP_EQUAL, CLONE, 0, 4)
    wanted.load(_low_word(0))
    wanted.when(JUMP_SET, CLONE_THREAD, 1, 0)
    wanted.give(ERRNO | EPERM)
    wanted.load(NUMBER)
    wanted.refuse_flags(OPEN, 1, WRITING, EACCES)
    wanted.refuse_flags(OPENAT, 2, WRITING, EACCES)
    wanted.refuse(OPENAT2, ENOSYS)
    if exec_too:  # else the loader of that program has yet to map it
        for number in CODE:
            wanted.refuse_flags(number, 2, PROT_EXEC, EPERM)
        for number in MOVES:
            wanted.refuse(number)
    wanted.give(ALLOW)
    wanted.install()
