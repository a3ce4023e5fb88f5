"""Whether two builds of the CUDA kernels have the same machine code, whatever files and kernels are called in either.

    python3 bench/compare_kernels.py BUILD_BEFORE BUILD_AFTER

Reads the objects (*.cu.o) of both folders with cuobjdump, which is on PATH or in the environment's CUOBJDUMP (PyPI has
it: nvidia-cuda-cuobjdump, and nvidia-cuda-nvdisasm beside it). A kernel before finds its like after: the same
instructions, encodings included, but for names of symbols, and the same registers, stack and shared memory. Exits with
1 where one has none.
"""
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

Code = collections.namedtuple("Code", "digest instructions registers stack local shared")


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def kernels(tool, path):
    """Code of each kernel of an object, by its mangled name."""
    usage = {}
    for name, registers, stack, shared, local in re.findall(
            r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)",
            run(tool, "--dump-resource-usage", str(path))):
        usage[name] = (int(registers), int(stack), int(local), int(shared))
    found = {}
    for section in re.split(r"\n\s*Function : ", run(tool, "-sass", str(path)))[1:]:
        name, _, body = section.partition("\n")
        lines = [line.strip() for line in body.splitlines() if re.match(r"\s*/\*", line)]
        code = re.sub(r"`\([^)]*\)|\b_Z\w+|\$\S+", "SYMBOL", "\n".join(lines))
        count = sum(1 for line in lines if re.match(r"/\*[0-9a-f]{4,}\*/", line))
        found[name.strip()] = Code(hashlib.sha256(code.encode()).hexdigest(), count, *usage[name.strip()])
    return found


def readable(names):
    """Demangled, without the namespace and the parameters."""
    texts = run("c++filt", text="\n".join(names)).splitlines()
    short = [re.sub(r"\(\w+\)(?=\d)", "",
                    re.sub(r"cosformer::kernels::cuda::|\(anonymous namespace\)::|^void ", "", text))
             .rsplit("(", 1)[0] for text in texts]
    return dict(zip(names, short))


def objects(folder):
    return {path.name: path for path in sorted(pathlib.Path(folder).rglob("*.cu.o"))}


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    tool = os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump")
    if tool is None:
        sys.exit("compare_kernels: no cuobjdump; pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm, "
                 "or set CUOBJDUMP")
    os.environ["PATH"] = os.path.dirname(tool) + os.pathsep + os.environ["PATH"]
    before, after = objects(sys.argv[1]), objects(sys.argv[2])
    if not before or not after:
        sys.exit("compare_kernels: a folder has no objects *.cu.o: " + sys.argv[2 if before else 1])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        old, new = ({(path.name, name): code
                     for path, found in zip(paths.values(), pool.map(lambda p: kernels(tool, p), paths.values()))
                     for name, code in found.items()} for paths in (before, after))
    names = readable([name for _, name in list(old) + list(new)])
    waiting = collections.defaultdict(list)
    for (_, name), code in sorted(new.items()):
        waiting[code].append(names[name])
    same = 0
    print(f"{'':7}{'code':>6}{'regs':>6}{'stack':>6}{'local':>6}{'shared':>7}  "
          "kernel before -> after, where its name differs")
    for (_, name), code in sorted(old.items(), key=lambda item: (item[0][0], names[item[0][1]])):
        likes, title, verdict = waiting[code], names[name], "OTHER"
        if likes:
            like = likes.pop(likes.index(title) if title in likes else 0)
            title += "" if like == title else f" -> {like}"
            verdict = "same"
            same += 1
        print(f"{verdict:7}{code.instructions:6}{code.registers:6}{code.stack:6}{code.local:6}{code.shared:7}  {title}")
    unknown = sum(len(left) for left in waiting.values())
    print(f"\n{same} of {len(old)} kernels in {len(before)} objects have the same code, registers, stack and "
          f"shared memory; {unknown} of {len(new)} after were not there before")
    sys.exit(0 if same == len(old) else 1)


if __name__ == "__main__":
    main()
