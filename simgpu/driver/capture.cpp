// Stream capture: which calls it forbids, how streams join a capture through events, and what
// makes it invalid. The rules are those of cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode
// and cuStreamEndCapture in the driver API's documentation.
#include <algorithm>
#include <atomic>

#include "graph.h"
#include "tables.h"

namespace simgpu {
namespace {

std::atomic<int> g_active{0};  // captures; nothing below costs anything while it is zero
std::vector<Capture*>& captures() {
  static auto* const active = new std::vector<Capture*>;
  return *active;
}

void remove_capture(Capture* capture) {
  for (Stream* stream : capture->streams) {
    stream->dependencies.clear();
    stream->capture.store(nullptr, std::memory_order_release);
  }
  std::erase(captures(), capture);
  g_active.fetch_sub(1);
}

Capture* find_capture(std::uint64_t id) {
  for (Capture* capture : captures())
    if (capture->id == id) return capture;
  return nullptr;
}

// Whether `from` is reached from the nodes in `ends`, going back.
bool reaches_back(const std::vector<GraphNode*>& ends, const GraphNode* wanted) {
  std::vector<GraphNode*> open = ends;
  std::set<GraphNode*> seen(ends.begin(), ends.end());
  while (!open.empty()) {
    GraphNode* node = open.back();
    open.pop_back();
    if (node == wanted) return true;
    for (GraphNode* before : node->dependencies)
      if (seen.insert(before).second) open.push_back(before);
  }
  return false;
}

bool unjoined(const Capture* capture) {
  for (const Stream* stream : capture->streams) {
    if (stream == capture->origin) continue;
    for (const GraphNode* node : stream->dependencies)
      if (capture->added_by_update.count(const_cast<GraphNode*>(node)) == 0 &&
          !reaches_back(capture->origin->dependencies, node))
        return true;
  }
  return false;
}

// The capture of a stream under the lock, and a new node behind what the stream has so far.
template <class Fill>
CUresult add_node(Stream* stream, CUgraphNodeType type, Fill fill) {
  std::lock_guard lock(g_graph_mutex);
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  GraphNode* node = new_node(capture->graph, type, stream->dependencies);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  node->context = driver().contexts.handle(stream->context);
  CUresult result = fill(node);
  if (result != CUDA_SUCCESS) {
    remove_node(node);
    return result;
  }
  stream->dependencies.assign(1, node);
  return CUDA_SUCCESS;
}

// Whether a capture forbids this thread its unsafe calls.
bool forbids(const Capture* capture) {
  CUstreamCaptureMode mode = thread_state().capture_mode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture->thread == &thread_state()) return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

CUresult refuse_in_capture() {
  if (likely(g_active.load(std::memory_order_relaxed) == 0)) return CUDA_SUCCESS;
  std::lock_guard lock(g_graph_mutex);
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture : captures())
    if (forbids(capture)) {
      capture->invalidated = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return result;
}

CUresult refuse_synchronise(Stream* stream) {
  if (likely(g_active.load(std::memory_order_relaxed) == 0)) return CUDA_SUCCESS;
  {
    std::lock_guard lock(g_graph_mutex);
    if (Capture* capture = stream->capture.load()) {
      capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return refuse_in_capture();
}

CUresult stream_for_work(CUstream handle, Context* context, Stream*& stream) {
  SIMGPU_TRY(find_stream(handle, context, stream));
  if (likely(g_active.load(std::memory_order_relaxed) == 0)) return CUDA_SUCCESS;
  std::lock_guard lock(g_graph_mutex);
  if (Capture* capture = stream->capture.load())
    return capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  if (stream != context->legacy_stream) return CUDA_SUCCESS;
  // The legacy stream would wait for a blocking stream that is being captured.
  for (Capture* capture : captures())
    for (const Stream* captured : capture->streams)
      if (captured->context == context && (captured->flags & CU_STREAM_NON_BLOCKING) == 0) {
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
  return CUDA_SUCCESS;
}

bool event_is_captured(const Event* event) {
  if (likely(g_active.load(std::memory_order_relaxed) == 0)) return false;
  std::uint64_t id = event->capture_id.load(std::memory_order_relaxed);
  if (id == 0) return false;
  std::lock_guard lock(g_graph_mutex);
  return find_capture(id) != nullptr;
}

void abandon_capture(Stream* stream) {
  std::lock_guard lock(g_graph_mutex);
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return;
  capture->invalidated = true;
  if (capture->origin != stream) {
    capture->streams.erase(stream);
    stream->capture.store(nullptr);
    return;
  }
  remove_capture(capture);
  if (!capture->external_graph) destroy_graph(capture->graph);
  delete capture;
}

CUresult capture_event_record(Stream* stream, Event* event, unsigned flags) {
  if (flags == CU_EVENT_RECORD_EXTERNAL)
    return add_node(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, [&](GraphNode* node) {
      node->event = driver().events.handle(event);
      return CUDA_SUCCESS;
    });
  std::lock_guard lock(g_graph_mutex);
  Capture* capture = stream->capture.load();
  if (capture == nullptr || capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture_dependencies = stream->dependencies;
  event->capture_id.store(capture->id);
  return CUDA_SUCCESS;
}

CUresult capture_event_wait(Stream* stream, Event* event, unsigned flags) {
  if (flags == CU_EVENT_WAIT_EXTERNAL)
    return add_node(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, [&](GraphNode* node) {
      node->event = driver().events.handle(event);
      return CUDA_SUCCESS;
    });
  std::lock_guard lock(g_graph_mutex);
  Capture* capture = stream->capture.load();
  Capture* source = find_capture(event->capture_id.load());
  if (capture == nullptr && source == nullptr) return CUDA_SUCCESS;
  if (capture != nullptr && capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (source == nullptr) {
    // Work outside the capture cannot become part of it.
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (source->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture != nullptr && capture != source) {
    capture->invalidated = source->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (capture == nullptr) {
    if (stream == stream->context->legacy_stream) {
      source->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    source->streams.insert(stream);
    stream->dependencies.clear();
    stream->capture.store(source, std::memory_order_release);
  }
  for (GraphNode* node : event->capture_dependencies)
    if (std::find(stream->dependencies.begin(), stream->dependencies.end(), node) ==
        stream->dependencies.end())
      stream->dependencies.push_back(node);
  return CUDA_SUCCESS;
}

CUresult capture_allocation(Stream* stream, Device* device, std::size_t size,
                            std::uint64_t& address) {
  return add_node(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [&](GraphNode* node) {
    SIMGPU_TRY(reserve_allocation_node(node, device, size));
    address = node->allocation.dptr;
    return CUDA_SUCCESS;
  });
}

CUresult capture_free(Stream* stream, CUdeviceptr pointer) {
  {
    std::lock_guard lock(g_graph_mutex);
    bool known = false;
    driver().tables->nodes.for_each([&](GraphNode* node) {
      known =
          known || (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node->allocation.dptr == pointer);
    });
    if (!known) return CUDA_ERROR_INVALID_VALUE;  // only graph memory can be freed by a graph
  }
  return add_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, [&](GraphNode* node) {
    node->freed = pointer;
    return CUDA_SUCCESS;
  });
}

CUresult capture_copy(Stream* stream, const CUDA_MEMCPY3D& copy) {
  return add_node(stream, CU_GRAPH_NODE_TYPE_MEMCPY, [&](GraphNode* node) {
    node->copy = copy;
    return CUDA_SUCCESS;
  });
}

CUresult capture_set(Stream* stream, const CUDA_MEMSET_NODE_PARAMS& set) {
  return add_node(stream, CU_GRAPH_NODE_TYPE_MEMSET, [&](GraphNode* node) {
    node->set = set;
    return CUDA_SUCCESS;
  });
}

CUresult capture_kernel(Stream* stream, const CUDA_KERNEL_NODE_PARAMS& launch) {
  return add_node(stream, CU_GRAPH_NODE_TYPE_KERNEL, [&](GraphNode* node) {
    node->kernel = launch;
    keep_kernel_parameters(node);
    return CUDA_SUCCESS;
  });
}

CUresult capture_host(Stream* stream, CUhostFn function, void* data) {
  return add_node(stream, CU_GRAPH_NODE_TYPE_HOST, [&](GraphNode* node) {
    node->host = {function, data};
    return CUDA_SUCCESS;
  });
}

CUresult capture_child(Stream* stream, Graph* graph) {
  return add_node(stream, CU_GRAPH_NODE_TYPE_GRAPH, [&](GraphNode* node) {
    node->child = clone_graph(graph);
    if (node->child == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    node->child->is_child = true;
    return CUDA_SUCCESS;
  });
}

namespace {

CUresult stream_of(CUstream handle, Stream*& stream) {
  SIMGPU_TRY(require_init());
  Context* context = current_context();
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
    SIMGPU_TRY(enter(context));
  return find_stream(handle, context, stream);
}

CUresult begin(CUstream handle, Graph* graph, const std::vector<GraphNode*>& after,
               CUstreamCaptureMode mode) {
  Stream* stream;
  SIMGPU_TRY(stream_of(handle, stream));
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream == stream->context->legacy_stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard lock(g_graph_mutex);
  if (stream->capture.load() != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto* capture = new Capture;
  capture->id = next_id();
  capture->external_graph = graph != nullptr;
  capture->graph = graph != nullptr ? graph : driver().tables->graphs.create();
  capture->mode = mode;
  capture->thread = &thread_state();
  capture->origin = stream;
  capture->streams.insert(stream);
  stream->dependencies = after;
  captures().push_back(capture);
  g_active.fetch_add(1);
  stream->capture.store(capture, std::memory_order_release);
  return CUDA_SUCCESS;
}

// What a stream's capture depends on, as handles that stay valid until the next call of the
// thread that asks.
const CUgraphNode* dependency_handles(const Stream* stream) {
  static thread_local std::vector<CUgraphNode>* handles = nullptr;
  if (handles == nullptr) handles = new std::vector<CUgraphNode>;
  handles->clear();
  for (const GraphNode* node : stream->dependencies) handles->push_back(handle_of(node));
  return handles->data();
}

const CUgraphEdgeData* dependency_edges(std::size_t count) {
  static thread_local std::vector<CUgraphEdgeData>* edges = nullptr;
  if (edges == nullptr) edges = new std::vector<CUgraphEdgeData>;
  edges->assign(count, CUgraphEdgeData{});
  return edges->data();
}

CUresult update(CUstream handle, CUgraphNode* nodes, std::size_t count, unsigned flags) {
  Stream* stream;
  SIMGPU_TRY(stream_of(handle, stream));
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (nodes == nullptr && count != 0))
    return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(g_graph_mutex);
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*> given;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* node;
    SIMGPU_TRY(find_node(nodes[i], node));
    if (node->graph != capture->graph) return CUDA_ERROR_INVALID_VALUE;
    given.push_back(node);
  }
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->dependencies.clear();
  for (GraphNode* node : given) {
    stream->dependencies.push_back(node);
    capture->added_by_update.insert(node);
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, nullptr, {}, mode);
}
CUresult cuStreamBeginCapture(CUstream stream) {
  return begin(stream, nullptr, {}, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph_handle,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                     size_t count, CUstreamCaptureMode mode) {
  Graph* graph;
  SIMGPU_TRY(find_graph(graph_handle, graph));
  std::vector<GraphNode*> after;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node;
    SIMGPU_TRY(find_node(dependencies[i], node));
    after.push_back(node);
  }
  return begin(stream, graph, after, mode);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  Stream* stream;
  SIMGPU_TRY(stream_of(handle, stream));
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  std::lock_guard lock(g_graph_mutex);
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &thread_state())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->origin != stream) {
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                    : unjoined(capture)  ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                         : CUDA_SUCCESS;
  remove_capture(capture);
  if (result == CUDA_SUCCESS)
    *graph = handle_of(capture->graph);
  else if (!capture->external_graph)
    destroy_graph(capture->graph);
  delete capture;
  return result;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  Stream* stream;
  SIMGPU_TRY(stream_of(handle, stream));
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (likely(g_active.load(std::memory_order_relaxed) == 0)) return CUDA_SUCCESS;
  std::lock_guard lock(g_graph_mutex);
  if (const Capture* capture = stream->capture.load())
    *status = capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  Stream* stream;
  SIMGPU_TRY(stream_of(handle, stream));
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (likely(g_active.load(std::memory_order_relaxed) == 0)) return CUDA_SUCCESS;
  std::lock_guard lock(g_graph_mutex);
  const Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_SUCCESS;
  *status =
      capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (capture->invalidated) return CUDA_SUCCESS;
  if (id != nullptr) *id = capture->id;
  if (graph != nullptr) *graph = handle_of(capture->graph);
  if (dependencies != nullptr) *dependencies = dependency_handles(stream);
  if (edges != nullptr) *edges = dependency_edges(stream->dependencies.size());
  if (count != nullptr) *count = stream->dependencies.size();
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                              const CUgraphEdgeData*, size_t count,
                                              unsigned int flags) {
  return update(stream, nodes, count, flags);
}
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count,
                                           unsigned int flags) {
  return update(stream, nodes, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  SIMGPU_TRY(require_init());
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_state().capture_mode);
  return CUDA_SUCCESS;
}
