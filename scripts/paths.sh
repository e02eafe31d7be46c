# Where the scripts keep things. Sourced, not run.
vramtrack_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
vramtrack_cache=${VRAMTRACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramtrack}
vramtrack_build=$vramtrack_root/build/release
vramtrack_install=$vramtrack_root/build/install

vramtrack_cuda12_version=12.8.90
vramtrack_cuda12_nvcc_version=12.8.93
vramtrack_cuda12=$vramtrack_cache/cuda12-headers-$vramtrack_cuda12_version-cupti
# Of CUDA 13, where no toolkit is installed. Each wheel has its own last number.
vramtrack_cuda13_wheels=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cupti==13.0.85
  nvidia-cuda-profiler-api==13.0.85)
vramtrack_cuda13=$vramtrack_cache/cuda13-headers-13.0.96
vramtrack_pytest_version=9.2.0

# Where there is none, the headers in NVIDIA's wheels have to do.
vramtrack_have_toolkit() {
  [[ -e ${CUDA_HOME:-/usr/local/cuda}/include/cuda.h ]]
}

# An environment's key: what it holds, and the Python that holds it.
vramtrack_env_of() {
  local key
  key=$({
    cat "$vramtrack_root/scripts/$1"
    "${vramtrack_base_python:-python3}" --version 2>/dev/null || echo none
  } | sha256sum | cut -c1-12)
  echo "$vramtrack_cache/python-$key"
}

# What depends on the Python that there is. Once more after set-up, which may have brought the first one.
vramtrack_find_python() {
  # The newest Python that the wheels in requirements.txt are known to run on.
  vramtrack_base_python=${VRAMTRACK_BASE_PYTHON:-}
  local candidate
  for candidate in python3.11 python3.12 python3.13 python3; do
    [[ -z $vramtrack_base_python ]] || break
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
      vramtrack_base_python=$(command -v "$candidate")
    fi
  done
  vramtrack_env=$(vramtrack_env_of requirements.txt)
  vramtrack_older_env=$(vramtrack_env_of requirements-older.txt)
  # pytest, for the test of the plugin: a folder of its own, so that a new version costs no new environment.
  vramtrack_pytest=$vramtrack_cache/pytest-$vramtrack_pytest_version-$(basename "$vramtrack_env")
}
vramtrack_find_python
