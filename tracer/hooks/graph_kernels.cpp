#include "hooks/graph_kernels.h"

#include <sys/mman.h>

#include "hooks/copy_records.h"
#include "hooks/kernel_accesses.h"
#include "hooks/kernel_functions.h"
#include "hooks/real_functions.h"

namespace vramtrack {
namespace {

constexpr size_t kMaxNodes = 1U << 20;
constexpr int kMaxNesting = 8;

// Not from the host's heap.
class Nodes {
 public:
  explicit Nodes(size_t count) : bytes_(count * sizeof(CUgraphNode)) {
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) nodes_ = static_cast<CUgraphNode*>(memory);
  }
  ~Nodes() {
    if (nodes_ != nullptr) munmap(nodes_, bytes_);
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  [[nodiscard]] CUgraphNode* data() const { return nodes_; }

 private:
  size_t bytes_;
  CUgraphNode* nodes_ = nullptr;
};

void read_kernel(const DriverCalls& driver, CUgraphNode node, uint64_t exec) {
  CUDA_KERNEL_NODE_PARAMS launch{};
  if (driver.cuGraphKernelNodeGetParams_v2 == nullptr ||
      driver.cuGraphKernelNodeGetParams_v2(node, &launch) != CUDA_SUCCESS)
    return;
  CUfunction function =
      launch.func != nullptr ? launch.func : reinterpret_cast<CUfunction>(launch.kern);
  AddressList addresses;
  const ParameterLayout layout = parameter_layout(function);
  if (layout.known) collect_addresses(layout, launch.kernelParams, launch.extra, addresses);
  record_access(kernel_name(function), addresses, 0, exec);
}

void read_copy(const DriverCalls& driver, CUgraphNode node, uint64_t exec) {
  CUDA_MEMCPY3D copy{};
  if (driver.cuGraphMemcpyNodeGetParams == nullptr ||
      driver.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS)
    return;
  record_copy(destination_of(copy), source_of(copy), copy.WidthInBytes * copy.Height * copy.Depth,
              0, exec);
}

void read_set(const DriverCalls& driver, CUgraphNode node, uint64_t exec) {
  CUDA_MEMSET_NODE_PARAMS set{};
  if (driver.cuGraphMemsetNodeGetParams == nullptr ||
      driver.cuGraphMemsetNodeGetParams(node, &set) != CUDA_SUCCESS)
    return;
  record_set(set.dst, set.width * set.elementSize * set.height, 0, exec);
}

void read_graph(const DriverCalls& driver, CUgraph graph, uint64_t exec, int nesting);

void read_node(const DriverCalls& driver, CUgraphNode node, uint64_t exec, int nesting) {
  CUgraphNodeType type{};
  if (driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  CUgraph child = nullptr;
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return read_kernel(driver, node, exec);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return read_copy(driver, node, exec);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return read_set(driver, node, exec);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (driver.cuGraphChildGraphNodeGetGraph != nullptr &&
          driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        read_graph(driver, child, exec, nesting + 1);
      return;
    default:
      return;
  }
}

void read_graph(const DriverCalls& driver, CUgraph graph, uint64_t exec, int nesting) {
  size_t count = 0;
  if (nesting > kMaxNesting || driver.cuGraphGetNodes == nullptr ||
      driver.cuGraphNodeGetType == nullptr ||
      driver.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0 ||
      count > kMaxNodes)
    return;
  const Nodes nodes(count);
  if (nodes.data() == nullptr ||
      driver.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS)
    return;
  for (size_t i = 0; i < count; ++i) read_node(driver, nodes.data()[i], exec, nesting);
}

}  // namespace

void record_graph_work(CUgraph graph, CUgraphExec exec) {
  read_graph(driver_calls(), graph, reinterpret_cast<uint64_t>(exec), 0);
}

}  // namespace vramtrack
