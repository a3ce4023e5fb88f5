"""What Nsight Compute reads of the attention kernels, one row for each launch of a shape's passes.

    python3 bench/kernel_profile.py build-cuda/bin/kernels_cuda_bench [SHAPE...]

Caches are emptied before each launch and clocks are left alone, so times are not those of the benchmark; bytes and
shares are what to read here.
"""
import csv
import io
import re
import shutil
import subprocess
import sys

SHAPES = ["causal-64-4k", "causal-64-64k", "causal-decay-64-1k", "full-64-1k", "full-64-64k", "full-decay-64-64k",
          "causal-128-4k", "causal-128-64k", "decode"]
COLUMNS = [  # title, metric, and the unit that it is printed in: how many of each of ncu's
    ("us", "gpu__time_duration.sum", {"ns": 1e-3, "us": 1, "ms": 1e3}),
    ("read MB", "dram__bytes_read.sum", {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}),
    ("written MB", "dram__bytes_write.sum", {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}),
    ("memory", "dram__throughput.avg.pct_of_peak_sustained_elapsed", {"%": 1}),
    ("tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", {"%": 1}),
    ("shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed", {"%": 1}),
    ("issue", "sm__inst_issued.avg.pct_of_peak_sustained_elapsed", {"%": 1}),
    ("warps", "sm__warps_active.avg.pct_of_peak_sustained_active", {"%": 1}),
    ("registers", "launch__registers_per_thread", {"register/thread": 1}),
]


def short(kernel):
    """narrow_kernel<NarrowSweep<1, 0, 1, 1>>(HopperParams) as narrow_kernel 1 0 1 1"""
    name, _, arguments = kernel.rsplit("(", 1)[0].removeprefix("void ").partition("<")
    return " ".join([name.split("::")[-1], *re.findall(r"\b\d+\b", arguments)])


def launches(program, shape):
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "auto",
               "--metrics", ",".join(metric for _, metric, _ in COLUMNS),
               "-k", "regex:narrow|wide|states_after|both_sides|state_|decay_|decode|sweep",
               program, "profile", shape]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    table = [row for row in csv.reader(io.StringIO(run.stdout)) if len(row) > 10]
    if run.returncode != 0 or len(table) < 3:
        sys.exit(f"ncu failed on {shape}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    titles, units = table[0], table[1]
    for row in table[2:]:
        cells = []
        for _, metric, scales in COLUMNS:
            if metric not in titles:
                cells.append("-")
                continue
            at = titles.index(metric)
            value = float(row[at].replace(",", "")) * scales.get(units[at], 1)
            cells.append(f"{value:.0f}" if "registers" in metric else f"{value:.1f}" + ("%" if "%" in scales else ""))
        yield short(row[titles.index("Kernel Name")]), cells


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    if shutil.which("ncu") is None:
        sys.exit("kernel_profile: Nsight Compute's ncu is not on PATH")
    program, shapes = sys.argv[1], sys.argv[2:] or SHAPES
    for shape in shapes:
        print(f"{shape:50}" + "".join(f"{title:>11}" for title, _, _ in COLUMNS))
        for kernel, cells in launches(program, shape):
            print(f"  {kernel:48}" + "".join(f"{cell:>11}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
