// How an entry point becomes a driver call: one line per function, with the context made current
// first, the arguments turned into the driver's types, and the result kept as the thread's last
// error.
//
//   return in_context(&DriverTable::MemAlloc, devPtr, size);
//
// Runtime and driver name the same things differently (cudaStream_t and CUstream are one type,
// void* and CUdeviceptr, cudaMemPoolProps and CUmemPoolProps are two of one layout). A pointer is
// only turned into another where both point to things of one size; that is checked when this is
// compiled.
//
// Everything here has internal linkage: files are compiled once more for the per-thread default
// stream, and the linker must not fold the two.
#pragma once

#include <cstring>
#include <type_traits>

#include "runtime/context.h"
#include "runtime/driver_table.h"
#include "runtime/error.h"

namespace simgpu {
namespace {

template <class T>
concept Complete = requires {
  sizeof(T);
};

template <class To, class From>
constexpr bool may_point_alike() {
  if constexpr (Complete<To> && Complete<From>) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): what is pointed to may be a pointer itself
    return sizeof(To) == sizeof(From);
  } else {
    return true;  // void and opaque handles
  }
}

template <class To, class From>
To convert(From from) {
  if constexpr (std::is_convertible_v<From, To> && !std::is_same_v<To, bool>) {
    return from;
  } else if constexpr (std::is_pointer_v<To> && std::is_pointer_v<From>) {
    using ToThing = std::remove_pointer_t<To>;
    using FromThing = std::remove_cv_t<std::remove_pointer_t<From>>;
    static_assert(may_point_alike<std::remove_cv_t<ToThing>, FromThing>(), "layouts differ");
    return reinterpret_cast<To>(const_cast<FromThing*>(from));
  } else if constexpr (std::is_enum_v<To> || std::is_enum_v<From>) {
    return static_cast<To>(from);
  } else if constexpr (std::is_pointer_v<From> || std::is_pointer_v<To>) {
    return reinterpret_cast<To>(from);
  } else {
    static_assert(sizeof(To) == sizeof(From), "layouts differ");
    To to;
    std::memcpy(static_cast<void*>(&to), &from, sizeof to);
    return to;
  }
}

// The stream functions with the meaning of stream 0 that this file is compiled for.
[[maybe_unused]] const StreamTable& table_of(const StreamTable*) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  return driver().per_thread;
#else
  return driver().legacy;
#endif
}

[[maybe_unused]] const DriverTable& table_of(const DriverTable*) {
  return driver().plain;
}

template <class Table, class... Wanted, class... Given>
cudaError_t call(CUresult (*Table::*function)(Wanted...), Given... given) {
  static_assert(sizeof...(Wanted) == sizeof...(Given));
  const Table& table = table_of(static_cast<const Table*>(nullptr));
  const auto entry = table.*function;
  if (entry == nullptr) {
    return not_simulated(driver_function_name(table, &(table.*function)));
  }
  return to_runtime(entry(convert<Wanted>(given)...));
}

template <class Function, class... Given>
[[maybe_unused]] cudaError_t in_driver(Function function, Given... given) {
  const cudaError_t error = enter_driver();
  return record(error != cudaSuccess ? error : call(function, given...));
}

template <class Function, class... Given>
[[maybe_unused]] cudaError_t in_context(Function function, Given... given) {
  const cudaError_t error = enter_context();
  return record(error != cudaSuccess ? error : call(function, given...));
}

}  // namespace
}  // namespace simgpu
