# Finds the CUDA headers, and only the headers: nothing here links a CUDA library, because driver,
# runtime and CUPTI may all be absent where vramtrack runs.
#
# Looked for in VRAMTRACK_CUDA_INCLUDE, in a toolkit, and in the wheels that PyPI calls nvidia-*
# (point VRAMTRACK_PYTHON_SITE at their site-packages).
#   vramtrack_cuda_headers      interface target with the include folders
#   VRAMTRACK_CUDA12_INCLUDE    headers of CUDA 12 for the second stand-in runtime, or empty
#   VRAMTRACK_CUDA12_CUPTI_INCLUDE   those of its CUPTI, for the second stand-in CUPTI, or empty
set(VRAMTRACK_CUDA_INCLUDE "" CACHE PATH "Folder that holds cuda.h")
set(VRAMTRACK_PYTHON_SITE "" CACHE PATH "site-packages with NVIDIA's wheels, where no toolkit is installed")
set(VRAMTRACK_CUDA12_INCLUDE "" CACHE PATH "Folder that holds the CUDA 12 cuda_runtime_api.h, optional")

set(VRAMTRACK_CUDA12_CUPTI_INCLUDE "" CACHE PATH "Folder that holds the CUDA 12 cupti.h, optional")

find_path(VRAMTRACK_CUDA_H cuda.h
  HINTS "${VRAMTRACK_CUDA_INCLUDE}" "$ENV{CUDA_HOME}/include" /usr/local/cuda/include
        "${VRAMTRACK_PYTHON_SITE}/nvidia/cu13/include"
        "${VRAMTRACK_PYTHON_SITE}/nvidia/cuda_runtime/include")
find_path(VRAMTRACK_CUPTI_H cupti.h
  HINTS "${VRAMTRACK_CUDA_H}" "${VRAMTRACK_CUDA_H}/../extras/CUPTI/include"
        "${VRAMTRACK_PYTHON_SITE}/nvidia/cu13/include"
        "${VRAMTRACK_PYTHON_SITE}/nvidia/cuda_cupti/include")
if(NOT VRAMTRACK_CUDA_H)
  message(FATAL_ERROR
    "cuda.h not found. Install a CUDA toolkit, or `pip install nvidia-cuda-runtime nvidia-cuda-crt "
    "nvidia-cuda-cupti nvidia-cuda-profiler-api` and pass -DVRAMTRACK_PYTHON_SITE=<site-packages>.")
endif()

add_library(vramtrack_cuda_headers INTERFACE)
target_include_directories(vramtrack_cuda_headers SYSTEM INTERFACE "${VRAMTRACK_CUDA_H}")
if(VRAMTRACK_CUPTI_H AND NOT VRAMTRACK_CUPTI_H STREQUAL VRAMTRACK_CUDA_H)
  target_include_directories(vramtrack_cuda_headers SYSTEM INTERFACE "${VRAMTRACK_CUPTI_H}")
endif()
