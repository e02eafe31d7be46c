// The subjects that a victim program can be asked for by name; each is one function in a file of
// its name.
#pragma once

namespace victims {

struct Subject {
  const char* name;
  void (*run)();
};

// Without kernels: compiled by any C++ compiler.
void device_memory();
void nested_frames();
void several_threads();
void several_streams();
void async_pools();
void virtual_memory();
void second_mapping();
void imported_handle();
void managed_memory();
void pinned_memory();
void arrays();
void graph_memory();
void graph_nodes();
void queries();
void leak();
void failing_request();
void misuse();
void device_reset();
void two_devices();
void null_arguments();
void values();
void errors_per_thread();
void shared_between_processes();

// With kernels: compiled by nvcc, absent where it is.
void kernels();
void kernel_threads();
void device_variables();
void captured_graph();
void exception_through_nvcc_code();

}  // namespace victims
