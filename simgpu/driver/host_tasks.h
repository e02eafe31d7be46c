// Host functions (cuLaunchHostFunc, cuStreamAddCallback). They run in order on one thread that is
// started by the first of them, never on the caller's: a host function may wait for a lock that
// the caller holds. No program without host functions gets a thread.
#ifndef SIMGPU_DRIVER_HOST_TASKS_H
#define SIMGPU_DRIVER_HOST_TASKS_H

#include <cstdint>
#include <functional>

namespace simgpu {

// Returns a ticket; 0 where the thread cannot be started (the task has then been run).
std::uint64_t submit_host_task(std::function<void()> task);
bool host_task_done(std::uint64_t ticket);
// Returns at once when called by a host function itself.
void wait_host_task(std::uint64_t ticket);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_HOST_TASKS_H
