// The stand-in CUPTI: what its files share. Built against the CUPTI headers of each CUDA version,
// so that records have the layout that programs of that version read.
//
//   driver --(simgpu.h: activity sink)--> link.cpp --> callbacks.cpp   to the subscriber
//                                                  --> records.cpp --> buffers.cpp   to the client
//
// The driver does not know this library; this library finds the driver at the first call that needs
// one, as the real one does. Callbacks run in the thread of the call they tell of, under no lock.
#pragma once

#include <cupti.h>
#include <simgpu.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

// Written at the start of a line, so that update_entry_points.py finds what is implemented.
#define ENTRY(name) extern "C" CUptiResult CUPTIAPI name

namespace simgpu {

// link.cpp. False where there is no simulated driver.
bool connect();
bool connected();

// callbacks.cpp
void tell_subscriber(const simgpu_activity& activity);
CUpti_CallbackId driver_callback_id(const char* function);  // 0: not one of those that are told

// records.cpp
bool wants(CUpti_ActivityKind kind);
void make_records(const simgpu_activity& activity);
std::size_t record_bytes(CUpti_ActivityKind kind);  // 0: no such record here
void push_external(CUpti_ExternalCorrelationKind kind, std::uint64_t id);

// buffers.cpp
void append_record(const void* record, std::size_t bytes);
std::uint64_t timestamp();

}  // namespace simgpu
