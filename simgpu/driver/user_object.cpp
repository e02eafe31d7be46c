// User objects: what graphs keep alive for the program, and destroy with the last that holds it.
#include <algorithm>

#include "graph.h"
#include "host_tasks.h"
#include "tables.h"

void simgpu::release_user_object(UserObject* object, std::uint64_t count) {
  object->references -= std::min(object->references, count);
  if (object->references != 0) return;
  // The destructor runs on its own: it may not call the driver, and must not run under our lock.
  submit_host_task([destroy = object->destroy, data = object->object] { destroy(data); });
  driver().tables->user_objects.destroy(object);
}

using namespace simgpu;

CUresult cuUserObjectCreate(CUuserObject* handle, void* object, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
  SIMGPU_TRY(require_init());
  if (handle == nullptr || destroy == nullptr || references == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(g_graph_mutex);
  UserObject* created = driver().tables->user_objects.create();
  if (created == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  created->object = object;
  created->destroy = destroy;
  created->references = references;
  *handle = driver().tables->user_objects.handle(created);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(g_graph_mutex);
  UserObject* object = driver().tables->user_objects.find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(g_graph_mutex);
  UserObject* object = driver().tables->user_objects.find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  release_user_object(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count,
                                 unsigned int flags) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(graph_handle, graph));
  UserObject* object = driver().tables->user_objects.find(handle);
  if (object == nullptr || count == 0 || flags > CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  graph->user_objects[object] += count;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) object->references += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(graph_handle, graph));
  UserObject* object = driver().tables->user_objects.find(handle);
  auto held = graph->user_objects.find(object);
  if (object == nullptr || held == graph->user_objects.end() || held->second < count)
    return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->user_objects.erase(held);
  release_user_object(object, count);
  return CUDA_SUCCESS;
}
