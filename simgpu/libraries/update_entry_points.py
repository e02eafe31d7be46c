#!/usr/bin/env python3
"""Brings the entry-point tables of the stand-in libraries up to date with a PyTorch wheel.

A table (<library>/entry_points.def) lists every name that a program can ask of that library: what its public
headers declare, and what the wheel's own libraries import. Names are only ever added, so that one table serves
every wheel that was seen. How an entry behaves is the word before it:

  IMPLEMENTED  written by hand in <library>/*.cpp, as documented
  COMPUTES     a routine whose only effect is on device memory: succeeds and computes nothing
  REDUCES      the same, unless its scalar result was asked for on the host: then it is not simulated
  STUB         prints "not simulated: <name>" once and returns the library's NOT_SUPPORTED status

usage: update_entry_points.py SITE_PACKAGES     (the folder that holds torch/ and nvidia/)
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# library folder -> (name pattern, public headers)
LIBRARIES = {
    "cublas": (r"cublas(?!Lt)\w+", ("cublas_api.h", "cublas_v2.h", "cublasXt.h")),
    "cublaslt": (r"cublasLt\w+", ("cublasLt.h",)),
    "cudnn": (r"cudnn[A-Z]\w+", ("cudnn*.h",)),
    "nccl": (r"p?nccl[A-Z]\w+", ("nccl.h",)),
    "cupti": (r"cupti[A-Z]\w+", ("cupti*.h",)),
    "cufft": (r"cufft[A-Z]\w+", ("cufft.h", "cufftXt.h")),
    "cusolver": (r"cusolver\w+", ("cusolver*.h",)),
    "cusparse": (r"cusparse(?!Lt)\w+", ("cusparse.h", "cusparse_v2.h")),
}
REPLACED = re.compile(r"lib(cublas|cublasLt|cudart|cudnn\w*|nccl|cupti|cufft|cusolver|cusparse)\.so")
BLAS = r"[SDCZH]|[CZ]s|[CZ]d|Cs|Zd"
REDUCES = re.compile(
    r"cublas(?:[SD](?:dot|nrm2|asum)|[CZ]dot[cu]|(?:Sc|Dz)(?:nrm2|asum)|I[sdcz]am(?:ax|in)|[SDCZ]rotm?g"
    r"|Dotc?Ex|Nrm2Ex|AsumEx|Iam(?:ax|in)Ex|Rotm?gEx)(?:_v2)?(?:_64)?$")
COMPUTES = re.compile(
    rf"cublas(?:(?:{BLAS})(?:gemm|gemv|ger|geru|gerc|gbmv|symv|hemv|syr|her|syr2|her2|syrk|herk|syr2k|her2k|syrkx|herkx"
    r"|symm|hemm|trmm|trsm|trmv|trsv|geam|dgmm|axpy|copy|scal|swap|rot|rotm|gemm3m|getrf|getri|getrs|geqrf|gels|matinv)\w*"
    r"|\w*gemv(?:Batched|StridedBatched)|(?:Gemm|[SC]gemm3?m?|[SC]syrk(?:3m)?|[SC]herk(?:3m)?)\w*Ex|AxpyEx|CopyEx|ScalEx|SwapEx|RotEx|RotmEx"
    r")(?:_64)?$")


def public_names(site, pattern, headers):
    names = set()
    for header in headers:
        for path in site.glob(f"nvidia/**/include/{header}"):
            text = path.read_text(errors="replace")
            text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
            text = re.sub(r"//[^\n]*", "", text)
            declared = re.findall(rf"\b({pattern})\s*\(", text)
            names.update(n for n in declared if not re.search(rf"#\s*define\s+{n}\b", text))
    return names


def exported_names(site, folder):
    stem = {"cublas": "libcublas.so*", "cublaslt": "libcublasLt.so*", "cudnn": "libcudnn.so*", "nccl": "libnccl.so*", "cupti": "libcupti.so*"}
    stem |= {name: f"lib{name}.so*" for name in ("cufft", "cusolver", "cusparse")}
    names = set()
    for path in site.glob(f"nvidia/**/lib/{stem[folder]}"):
        names.update(dynamic_symbols(path, "--defined-only"))
    return names


def dynamic_symbols(path, which):
    output = subprocess.run(["nm", "-D", which, str(path)], capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in output.splitlines() if line.split()}


def imported_names(site):
    libraries = list(site.glob("torch/lib/*.so")) + list(site.glob("nvidia/**/lib/lib*.so*"))
    names = set()
    for path in libraries:
        if not REPLACED.search(path.name):
            names |= dynamic_symbols(path, "--undefined-only")
    return names


def expanded(source):
    """The source with its macros of several entry points written out, as far as their names go."""
    source = source.replace("\\\n", "\n")
    for name, parameters, body in re.findall(r"^#define (\w+)\(([\w, ]+)\)[ \n]+((?:  .*\n)+)", source, re.M):
        for arguments in re.findall(rf"^{name}\(([\w, ]+)\)$", source, re.M):
            text = re.sub(r"^ +", "", body, flags=re.M)
            for parameter, argument in zip(parameters.split(", "), arguments.split(", ")):
                text = re.sub(rf"\b{parameter}\b", argument, text)
            source += text.replace("##", "")
    return source


def implemented_names(source, pattern):
    source, names = expanded(source), set()
    for definition in (rf"^(?:TEXT_)?ENTRY\(({pattern})\)", rf"^FIELD_ENTRIES\(({pattern}),",
                       rf"^FIELD_ENTRIES\(\w+,\s*({pattern}),", rf"visibility\(\"default\"\)\)\) [\w:]+ ({pattern})\("):
        names.update(re.findall(definition, source, re.M))
    return names


def behaviour(folder, name, implemented):
    if name in implemented:
        return "IMPLEMENTED"
    if folder == "cublas" and "Xt" not in name:
        if REDUCES.match(name):
            return "REDUCES"
        if COMPUTES.match(name):
            return "COMPUTES"
    return "STUB"


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], "torch").is_dir():
        sys.exit(__doc__)
    site = pathlib.Path(sys.argv[1])
    imported = imported_names(site)
    for folder, (pattern, headers) in LIBRARIES.items():
        table = HERE / folder / "entry_points.def"
        old = set(re.findall(r"^[A-Z]+\((\w+)\)", table.read_text(), re.M)) if table.exists() else set()
        names = {n for n in imported if re.fullmatch(pattern, n)}
        names |= public_names(site, pattern, headers) & exported_names(site, folder)
        source = "".join(p.read_text() for p in sorted((HERE / folder).glob("*.cpp")))
        implemented = implemented_names(source, pattern)
        lines = [f"{behaviour(folder, n, implemented)}({n})\n" for n in sorted(names | old | implemented)]
        table.write_text(f"// The entry points of the stand-in {folder}; see update_entry_points.py.\n" + "".join(lines))
        print(f"{folder}: {len(lines)} entry points, {len((names | old | implemented) - old)} new")


if __name__ == "__main__":
    main()
