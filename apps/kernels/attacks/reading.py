"""Attacks that read or write what isn't theirs: files, homes, the judge's environment and memory, shared inputs."""

from __future__ import annotations

from apps.kernels.attacks.attack import Attack, Layer

FILES = (Layer.ROOT, Layer.LANDLOCK)
OTHERS = (Layer.PROCESSES, Layer.LANDLOCK, Layer.SECCOMP)

READING = (
    Attack("files", "read /etc/shadow", "return open('/etc/shadow').read()", (*FILES, Layer.USER)),
    Attack("files", "list the judge's home", "return os.listdir(t['home'])", FILES),
    Attack("files", "read a file of the installation's data", "return open(t['secret']).read()", FILES),
    Attack("files", "read PRAGMA's own code", "return open(t['code']).read()", FILES),
    Attack("files", "read it through a symlink", "return open(link_to(t['secret'])).read()", FILES),
    Attack("files", "read it through /proc/1/root", "return open('/proc/1/root' + t['secret']).read()", FILES),
    Attack("files", "read it through /proc/self/cwd/..",
           "return open('/proc/self/cwd' + '/..' * 9 + t['secret']).read()", FILES),
    Attack("files", "hard link to it", "os.link(t['secret'], 'linked')\nreturn open('linked').read()", FILES),
    Attack("files", "open it by handle", "return call(304, -100, buffer(136), 0)", (Layer.SECCOMP, Layer.RIGHTS)),
    Attack(
        "files", "escape by chroot",
        "os.mkdir('c')\nos.chroot('c')\nos.chroot('../' * 20)\nreturn open(t['secret']).read()",
        (Layer.SECCOMP, Layer.RIGHTS),
    ),
    Attack("files", "write to /usr", "return open('/usr/lib/pragma-was-here', 'w')", FILES),
    Attack("files", "write into Python's packages", "import json\nreturn open(json.__file__, 'r+')", (*FILES, Layer.USER)),
    Attack("files", "preload a library", "return open('/etc/ld.so.preload', 'w')", (*FILES, Layer.USER)),
    Attack("files", "schedule a job", "os.makedirs('/etc/cron.d')\nreturn open('/etc/cron.d/x', 'w')", (*FILES, Layer.USER)),
    Attack("files", "make a device", "os.mknod('disk', 0o60600, os.makedev(254, 0))\nreturn open('disk', 'rb').read(1)",
           (Layer.SECCOMP, Layer.RIGHTS)),
    Attack("files", "read the machine's memory", "return open('/dev/mem', 'rb').read(1)", FILES),
    Attack("files", "read the machine's disk",
           "disks = [d for d in ('/dev/vda', '/dev/sda', '/dev/nvme0n1') if os.path.exists(d)]\n"
           "assert disks, 'none is there'\nreturn open(disks[0], 'rb').read(1)", FILES),
    Attack("files", "change another jail's limits", "return open(t['group'], 'w')", FILES),
    Attack("judge", "its environment", "return open(f\"/proc/{t['judge']}/environ\", 'rb').read()", OTHERS),
    Attack("judge", "the environment it was started with",
           "data = open('/proc/self/environ', 'rb').read()\nassert data, 'it is empty'\nreturn data", (Layer.CLEAN,)),
    Attack("judge", "its memory by /proc", "return read_at(f\"/proc/{t['judge']}/mem\", t['address'])", OTHERS),
    Attack("judge", "its memory by process_vm_readv",
           "into, there = vector(buffer(32), 32), vector(t['address'], 32)\n"
           "return call(310, t['judge'], ref(into), 1, ref(there), 1, 0)", (Layer.SECCOMP, Layer.PROCESSES, Layer.USER)),
    Attack("judge", "its open files", "return os.listdir(f\"/proc/{t['judge']}/fd\")", OTHERS),
    Attack("judge", "its descriptors by pidfd", "return call(438, call(434, t['judge'], 0), 1, 0)",
           (Layer.SECCOMP, Layer.PROCESSES)),
    Attack("judge", "descriptors that leaked",
           "extra = [n for n in range(3, 512) if n not in t['own'] and is_open(n)]\nassert extra, 'none did'\nreturn extra",
           (Layer.CLEAN,)),
    Attack("judge", "variables that leaked", "extra = set(os.environ) - {'PATH', 'HOME', 'TMPDIR', 'USER', 'LANG'}\n"
           "assert extra, 'none did'\nreturn extra", (Layer.CLEAN,)),
    Attack("inputs", "map them writable", "return mmap.mmap(t['own'][1], 4096)", (Layer.SEALS,)),
    Attack("inputs", "write to their file", "return os.pwrite(t['own'][1], b'x', 0)", (Layer.SEALS,)),
    Attack("inputs", "open their file anew", "return mmap.mmap(os.open(f\"/proc/self/fd/{t['own'][1]}\", os.O_RDWR), 4096)",
           (Layer.SEALS,)),
    Attack("inputs", "cut their file short", "return os.ftruncate(t['own'][1], 0)", (Layer.SEALS,)),
    Attack("inputs", "punch a hole into their file", "return call(285, t['own'][1], 3, 0, 4096)", (Layer.SEALS,)),
    Attack("inputs", "write through /proc/self/mem",
           "m = mmap.mmap(t['own'][1], 4096, prot=mmap.PROT_READ)\n"
           "f = os.open('/proc/self/mem', os.O_RDWR)\nreturn os.pwrite(f, b'x', address_of('memfd:pragma-attacked'))",
           (Layer.SEALS, Layer.ROOT)),
)  # fmt: skip
