"""cuDNN's front end asks for functions of the CUDA runtime by their names, while it runs. cuda_attention_cudnn.cpp hands
them out of a table: one that is missing there is found by nobody who has no GPU. cudnn_functions_test.py SHIM SOURCE"""

import re
import sys

# Attention is never run within a graph; names of CUDA 12, which this program is not built with.
NOT_ASKED = re.compile(r"Graph|UserObject|StreamBeginCapture|StreamEndCapture|_v2$")


def asked(shim):
    direct = re.findall(r'CudaLibrary::CUDART,\s*"(cuda\w+)"', shim)
    by_variable = re.findall(r'const char \*resolver\s*=\s*"(cuda\w+ByVersion)"', shim)
    called = re.findall(r"NV_FE_CALL_TO_CUDA\(\s*\w+,\s*(cuda[A-Z]\w*)", shim)
    return {name for name in direct + by_variable + called if not NOT_ASKED.search(name)}


def main(shim_file, source_file):
    with open(shim_file, encoding="utf-8") as shim, open(source_file, encoding="utf-8") as source:
        names = asked(shim.read())
        missing = sorted(names - set(re.findall(r'"(cuda\w+)"', source.read())))
    if len(names) < 15:
        sys.exit(f"only {len(names)} functions were found in {shim_file}: it is written in another way now")
    if missing:
        sys.exit(f"{source_file} does not hand out {', '.join(missing)}, which {shim_file} may ask for")


if __name__ == "__main__":
    main(*sys.argv[1:])
