// Writing and waiting for values in memory. A wait never waits: what another stream or device
// would write is taken as written, and counted as assumed where the value is not there.
#include <cstring>

#include "copy.h"
#include "tables.h"

using namespace simgpu;

namespace {

CUresult work_stream(CUstream handle, Stream*& stream) {
  Context* context;
  SIMGPU_TRY(enter(context));
  SIMGPU_TRY(stream_for_work(handle, context, stream));
  if (stream->capture.load() != nullptr)
    return static_cast<CUresult>(simgpu_not_simulated("stream memory operations in a capture"));
  return CUDA_SUCCESS;
}

template <class Value>
CUresult write_value(CUdeviceptr address, Value value) {
  SIMGPU_TRY(check_range(address, sizeof value, Side::kDevice));
  move_bytes(address, reinterpret_cast<std::uint64_t>(&value), sizeof value);
  return CUDA_SUCCESS;
}

template <class Value>
CUresult wait_value(CUdeviceptr address, Value wanted, unsigned flags) {
  SIMGPU_TRY(check_range(address, sizeof wanted, Side::kDevice));
  Value value{};
  std::size_t known = sizeof value;
  if (driver().addresses.contains(address))
    known = read_contents(address, &value, sizeof value, nullptr);
  else
    std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  bool met = false;
  switch (flags & 3U) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      met = static_cast<std::make_signed_t<Value>>(value - wanted) >= 0;
      break;
    case CU_STREAM_WAIT_VALUE_EQ:
      met = value == wanted;
      break;
    case CU_STREAM_WAIT_VALUE_AND:
      met = (value & wanted) != 0;
      break;
    default:
      met = static_cast<Value>(~(value | wanted)) != 0;
  }
  if (!met || known < sizeof value) assume("stream wait for a value, taken as met");
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                 unsigned int) {
  Stream* stream;
  SIMGPU_TRY(work_stream(handle, stream));
  return write_value(address, value);
}
CUresult cuStreamWriteValue64_v2(CUstream handle, CUdeviceptr address, cuuint64_t value,
                                 unsigned int) {
  Stream* stream;
  SIMGPU_TRY(work_stream(handle, stream));
  return write_value(address, value);
}
CUresult cuStreamWaitValue32_v2(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags) {
  Stream* stream;
  SIMGPU_TRY(work_stream(handle, stream));
  return wait_value(address, value, flags);
}
CUresult cuStreamWaitValue64_v2(CUstream handle, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags) {
  Stream* stream;
  SIMGPU_TRY(work_stream(handle, stream));
  return wait_value(address, value, flags);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                              unsigned int flags) {
  return cuStreamWriteValue32_v2(stream, address, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                              unsigned int flags) {
  return cuStreamWriteValue64_v2(stream, address, value, flags);
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                             unsigned int flags) {
  return cuStreamWaitValue32_v2(stream, address, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                             unsigned int flags) {
  return cuStreamWaitValue64_v2(stream, address, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream handle, unsigned int count,
                               CUstreamBatchMemOpParams* operations, unsigned int flags) {
  Stream* stream;
  SIMGPU_TRY(work_stream(handle, stream));
  if (operations == nullptr || count > 256 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& one = operations[i];
    switch (one.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        SIMGPU_TRY(wait_value(one.waitValue.address, one.waitValue.value, one.waitValue.flags));
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        SIMGPU_TRY(wait_value(one.waitValue.address, one.waitValue.value64, one.waitValue.flags));
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        SIMGPU_TRY(write_value(one.writeValue.address, one.writeValue.value));
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        SIMGPU_TRY(write_value(one.writeValue.address, one.writeValue.value64));
        break;
      case CU_STREAM_MEM_OP_BARRIER:
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
                            CUstreamBatchMemOpParams* operations, unsigned int flags) {
  return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}
