// Modules, libraries, functions, launches, occupancy. What kernels.cubin holds is what ptxas said
// when it made the file: scale: 14 registers, 1024 bytes of shared memory; nothing: 4 registers.
// Its parameters and variables stand in kernels.cu.
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "context.h"

using namespace vramtrack::test;

namespace {

const std::string kCubin = VRAMTRACK_TEST_DATA "/simgpu/kernels.cubin";

std::vector<char> cubin() {
  std::ifstream file(kCubin, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

int attribute(CUfunction function, CUfunction_attribute name) {
  int value = -1;
  OK(cuFuncGetAttribute(&value, name, function));
  return value;
}

}  // namespace

TEST_CASE("a cubin tells its kernels, parameters and variables") {
  SimulatedContext gpu;
  const std::vector<char> image = cubin();
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, image.data()));
  unsigned count = 0;
  OK(cuModuleGetFunctionCount(&count, module));
  CHECK(count == 2);
  CUfunction scale = nullptr, missing = nullptr;
  OK(cuModuleGetFunction(&scale, module, "scale"));
  CHECK(cuModuleGetFunction(&missing, module, "no such kernel") == CUDA_ERROR_NOT_FOUND);
  CHECK(attribute(scale, CU_FUNC_ATTRIBUTE_NUM_REGS) == 14);
  CHECK(attribute(scale, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 1024);
  CHECK(attribute(scale, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 128);
  CHECK(attribute(scale, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  const char* name = nullptr;
  OK(cuFuncGetName(&name, scale));
  CHECK(std::string(name) == "scale");
  // float*, float, int, char, double4: the layout of the C++ ABI.
  const std::size_t offsets[] = {0, 8, 12, 16, 32};
  const std::size_t sizes[] = {8, 4, 4, 1, 32};
  for (std::size_t i = 0; i < 5; ++i) {
    std::size_t offset = 99, size = 99;
    OK(cuFuncGetParamInfo(scale, i, &offset, &size));
    CHECK(offset == offsets[i]);
    CHECK(size == sizes[i]);
  }
  std::size_t offset = 0, size = 0;
  CHECK(cuFuncGetParamInfo(scale, 5, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr counter = 0;
  OK(cuModuleGetGlobal(&counter, &size, module, "counter"));
  CHECK(size == 25 * sizeof(int));
  CHECK(gpu.usage().module == size);
  CHECK(cuModuleGetGlobal(&counter, &size, module, "tile") == CUDA_ERROR_NOT_FOUND);
  OK(cuModuleUnload(module));
  CHECK(gpu.usage().module == 0);
  CHECK(cuModuleGetFunction(&scale, module, "scale") == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a damaged cubin is an error, not a fault") {
  SimulatedContext gpu;
  const std::vector<char> image = cubin();
  std::mt19937 random(20);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<char> damaged = image;
    // The header alone on every second turn: there the damage tells most.
    const std::size_t reach = i % 2 == 0 ? 64 : damaged.size();
    for (int n = 0; n < 10; ++n) damaged[4 + random() % (reach - 4)] = static_cast<char>(random());
    CUmodule module = nullptr;
    const CUresult result = cuModuleLoadData(&module, damaged.data());
    CHECK((result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_IMAGE));
    if (result == CUDA_SUCCESS) OK(cuModuleUnload(module));
    if (result == CUDA_ERROR_INVALID_IMAGE) ++refused;
  }
  CHECK(refused > 0);
}

TEST_CASE("libraries, and PTX") {
  SimulatedContext gpu;
  CUlibrary library = nullptr;
  OK(cuLibraryLoadFromFile(&library, kCubin.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  OK(cuLibraryGetKernel(&kernel, library, "nothing"));
  CUfunction function = nullptr, again = nullptr;
  OK(cuKernelGetFunction(&function, kernel));
  OK(cuKernelGetFunction(&again, kernel));
  CHECK(function == again);
  CHECK(attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS) == 4);
  // Both kinds of handle can be launched.
  OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr,
                    nullptr));
  OK(cuLibraryUnload(library));
  CHECK(cuLibraryGetKernel(&kernel, library, "nothing") == CUDA_ERROR_INVALID_HANDLE);

  const char ptx[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry first()\n{ ret; }\n.entry second(.param .u64 p) { ret; }\n";
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleGetFunction(&function, module, "second"));
  CHECK(cuModuleGetFunction(&function, module, "third") == CUDA_ERROR_NOT_FOUND);
  OK(cuModuleUnload(module));
  const char junk[] = "this is no image at all, and long enough to be read as one ..........";
  CHECK(cuModuleLoadData(&module, junk) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(cuModuleLoad(&module, "/no/such/file") == CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_CASE("opaque images take names on trust, and sizes from registration") {
  SimulatedContext gpu;
  const unsigned container[16] = {0xba55ed50, 0x00100001, 0, 0};
  CUlibrary library = nullptr;
  OK(cuLibraryLoadData(&library, container, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  OK(cuLibraryGetKernel(&kernel, library, "_Z3fooPf"));
  std::size_t offset = 0, size = 0;
  CHECK(cuKernelGetParamInfo(kernel, 0, &offset, &size) == CUDA_ERROR_NOT_SUPPORTED);
  CUdeviceptr variable = 0;
  CHECK(cuLibraryGetGlobal(&variable, &size, library, "table") == CUDA_ERROR_NOT_FOUND);
  REQUIRE(simgpu_declare_global(library, "table", 12345) == 0);
  OK(cuLibraryGetGlobal(&variable, &size, library, "table"));
  CHECK(size == 12345);
  OK(cuLibraryUnload(library));
}

TEST_CASE("launches are checked against the kernel's and the card's limits") {
  SimulatedContext gpu;
  const std::vector<char> image = cubin();
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, image.data()));
  CUfunction scale = nullptr, nothing = nullptr;
  OK(cuModuleGetFunction(&scale, module, "scale"));
  OK(cuModuleGetFunction(&nothing, module, "nothing"));
  auto launch = [](CUfunction function, unsigned grid_y, unsigned block, unsigned shared) {
    return cuLaunchKernel(function, 1, grid_y, 1, block, 1, 1, shared, nullptr, nullptr, nullptr);
  };
  CHECK(launch(scale, 1, 128, 0) == CUDA_SUCCESS);
  CHECK(launch(scale, 1, 129, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(nothing, 1, 1025, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(nothing, 1, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(nothing, 65536, 32, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(nothing, 1, 32, 49152) == CUDA_SUCCESS);
  CHECK(launch(nothing, 1, 32, 49153) == CUDA_ERROR_INVALID_VALUE);
  // The sized card is an A100 in all else: 163 KiB by opting in.
  OK(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 163 * 1024));
  CHECK(launch(nothing, 1, 32, 163 * 1024) == CUDA_SUCCESS);
  CHECK(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           163 * 1024 + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(reinterpret_cast<CUfunction>(&gpu), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                       nullptr) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuModuleUnload(module));
}

TEST_CASE("occupancy follows the limits of the multiprocessor") {
  SimulatedContext gpu;
  const std::vector<char> image = cubin();
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, image.data()));
  CUfunction nothing = nullptr, scale = nullptr;
  OK(cuModuleGetFunction(&nothing, module, "nothing"));
  OK(cuModuleGetFunction(&scale, module, "scale"));
  int blocks = 0;
  // 2,048 threads and 32 blocks per multiprocessor of compute capability 8.0.
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 1024, 0));
  CHECK(blocks == 2);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
  CHECK(blocks == 32);
  // 164 KiB shared per multiprocessor, 1 KiB of it reserved for each block.
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 40 * 1024));
  CHECK(blocks == 4);
  int grid = 0, block = 0;
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, scale, nullptr, 0, 0));
  CHECK(block == 128);
  CHECK(grid == 108 * 16);
  OK(cuModuleUnload(module));
}
