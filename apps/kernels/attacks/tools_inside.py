"""What attacks have at hand. This text runs inside a jail, before each attack's own."""

from __future__ import annotations

TOOLS = r"""
import ctypes, fcntl, mmap, os, resource, shutil, signal, socket, struct, subprocess, time
"now".encode("idna")  # takes a module of compiled code, which can't be loaded any more once it is judged
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
t = payload["targets"] | {"own": [channel.fileno(), *channel.files]}
own_threads = {int(task) for task in os.listdir("/proc/self/task")}
if t["judge"] in own_threads:  # a namesake, in a process namespace: its own threads are no prey
    t["judge"] = next(pid for pid in (t["zygote"], 1 << 21) if pid not in own_threads)

def call(number, *arguments):
    libc.syscall.argtypes = None
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    got = libc.syscall(ctypes.c_long(number), *wide)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got

def prctl(option, value):
    return call(157, option, value, 0, 0, 0) or "done"

def buffer(size):
    return ctypes.create_string_buffer(size)

def cstring(text):
    return ctypes.c_char_p(text.encode())

def pointers(*texts):
    return (ctypes.c_char_p * (len(texts) + 1))(*(text.encode() for text in texts), None)

ref = ctypes.byref

class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

def vector(what, size):
    made = Vector(what if isinstance(what, int) else ctypes.addressof(what), size)
    made.kept = what
    return made

def perf_attributes():
    return ctypes.create_string_buffer(struct.pack("=IIQQQQQIIQ", 1, 64, 1, 0, 0, 0, 1, 0, 0, 0), 64)

def address_of(name):
    lines = open("/proc/self/maps").read().splitlines()
    return int(next(line for line in lines if name in line).split("-")[0], 16)

class Nothing(LookupError):
    "An attack ran, and found nothing of the judge's."

def found(data):
    if t["token"].encode() in data:
        return t["token"]
    raise Nothing("nothing of the judge's in what came of it")

def read_at(path, address):
    descriptor = os.open(path, os.O_RDONLY)
    return found(os.pread(descriptor, 64, address))

def link_to(path):
    os.symlink(path, "link")
    return "link"

def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True

def filled(text):
    return text.format(secret=t["secret"], judge=t["judge"], token=t["token"])

def compiled(source, flags):
    open("a.cpp", "w").write(filled(source))
    seen = b""
    for compiler in t["compilers"]:
        command = [compiler, *map(filled, flags)]
        if "-x" not in command and "-shared" not in command:
            command += ["-c"]
        done = subprocess.run([*command, "a.cpp", "-o", "a.out"], capture_output=True, stdin=subprocess.DEVNULL)
        seen += done.stdout + done.stderr
        if os.path.exists("a.out"):
            seen += open("a.out", "rb").read()
            os.unlink("a.out")
    return found(seen)

def written(*flags):
    open("a.cpp", "w").write("int a;\n")
    for compiler in t["compilers"]:
        more = ["-o", "a.out"] if "-o" not in flags else []
        subprocess.run([compiler, "-c", "a.cpp", *more, *flags, t["outside"]], capture_output=True)
    if os.path.exists(t["outside"]):
        return "written"
    raise PermissionError("nothing was written")

def tried(code):
    space = dict(globals())
    try:
        exec("def attempt():\n" + "\n".join("    " + line for line in code.splitlines()), space)
        return ["did", repr(space["attempt"]())[:100]]
    except (TypeError, NameError, AttributeError, SyntaxError, LookupError) as mistake:
        failed = isinstance(mistake, Nothing)
        return ["refused" if failed else "broken", f"{'' if failed else type(mistake).__name__ + ': '}{mistake}"[:100]]
    except BaseException as refusal:
        return ["refused", type(refusal).__name__ + (f": {refusal}" if str(refusal) else "")[:100]]

if payload["close"]:
    from apps.kernels.inside.phases import close_building
    close_building()
channel.send({"ready": True})
channel.receive()
channel.send({"became": [tried(code) for code in payload["attempts"]]})
"""
