// Recurrent networks of cuDNN: what PyTorch's RNN, GRU and LSTM ask for. The number of weights and
// where each lies in the weight space follow from the documented equations. How much workspace and
// reserve the real library wants is not documented; what the standard algorithm has to keep is
// assumed: the input's part of all gates as workspace, and for the backward pass the gates, the
// cell and the output of every layer and step, with the masks of dropout between layers.
#include "common/entry.h"
#include "cudnn/older_interface.h"

namespace {

using simgpu::CudnnTensorDescriptor;

enum CellMode { kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3 };
enum BiasMode { kNoBias = 0, kInputBias = 1, kDoubleBias = 2, kRecurrentBias = 3 };

constexpr std::size_t kRandomStateBytes = 48;  // curandStateXORWOW_t

struct DropoutDescriptor {
  float probability;
};

struct RnnDescriptor {
  int cell, bias, type;
  bool bidirectional, dropout;
  std::size_t input, hidden, projection, layers;

  std::size_t directions() const { return bidirectional ? 2 : 1; }
  std::size_t pseudo_layers() const { return layers * directions(); }
  std::size_t gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  // Of what a layer hands on: of the hidden state, or of its projection.
  std::size_t output() const { return projection != 0 ? projection : hidden; }
  bool projects() const { return projection != 0 && projection != hidden; }
  std::size_t biases() const {
    return bias == kNoBias ? 0 : bias == kDoubleBias ? 2 * gates() : gates();
  }
  std::size_t inputs_of(std::size_t pseudo_layer) const {
    return pseudo_layer < directions() ? input : output() * directions();
  }
  std::size_t matrices_of(std::size_t pseudo_layer) const {
    return gates() * hidden * (inputs_of(pseudo_layer) + output()) +
           (projects() ? hidden * projection : 0);
  }
  // Elements before the weights of a pseudo-layer. Its matrices come first, then its biases.
  std::size_t begin_of(std::size_t pseudo_layer) const {
    std::size_t elements = 0;
    for (std::size_t i = 0; i < pseudo_layer; ++i) elements += matrices_of(i) + biases() * hidden;
    return elements;
  }
};

struct RnnDataDescriptor {
  int type;
  std::size_t steps, batch, vector;
};

std::size_t element_bytes(int type) {
  constexpr int kFloat = 0, kDouble = 1;
  return type == kDouble ? 8 : type == kFloat ? 4 : 2;
}

void describe(CudnnTensorDescriptor* tensor, int type, std::size_t rows, std::size_t columns) {
  *tensor = {.type = type, .dimensions = 3, .sizes = {}, .strides = {}};
  const int sizes[] = {rows != 0, static_cast<int>(rows), static_cast<int>(columns)};
  for (int i = 0; i < 3; ++i) tensor->sizes[i] = sizes[i];
  tensor->strides[0] = sizes[1] * sizes[2];
  tensor->strides[1] = sizes[2];
  tensor->strides[2] = 1;
}

// A part of a weight space: elements before it, and its shape; no rows where it does not exist.
struct Part {
  std::size_t begin, rows, columns;
};

// Linear layers: those of the gates on the input, then on the recurrent state, then the projection.
Part matrix_of(const RnnDescriptor& rnn, std::size_t pseudo_layer, std::size_t linear) {
  const std::size_t gates = rnn.gates(), inputs = rnn.inputs_of(pseudo_layer);
  const std::size_t begin = rnn.begin_of(pseudo_layer);
  if (linear < gates) return {begin + linear * rnn.hidden * inputs, rnn.hidden, inputs};
  const std::size_t recurrent = begin + gates * rnn.hidden * inputs;
  if (linear < 2 * gates)
    return {recurrent + (linear - gates) * rnn.hidden * rnn.output(), rnn.hidden, rnn.output()};
  if (linear == 2 * gates && rnn.projects())
    return {recurrent + gates * rnn.hidden * rnn.output(), rnn.projection, rnn.hidden};
  return {};
}

Part bias_of(const RnnDescriptor& rnn, std::size_t pseudo_layer, std::size_t linear) {
  const std::size_t gates = rnn.gates();
  if (linear >= 2 * gates || rnn.bias == kNoBias) return {};
  const bool recurrent = linear >= gates;
  if (rnn.bias == kInputBias && recurrent) return {};
  if (rnn.bias == kRecurrentBias && !recurrent) return {};
  const std::size_t index = rnn.bias == kRecurrentBias ? linear - gates : linear;
  return {rnn.begin_of(pseudo_layer) + rnn.matrices_of(pseudo_layer) + index * rnn.hidden,
          rnn.hidden, 1};
}

void give(const Part& part, const RnnDescriptor& rnn, const void* weights,
          CudnnTensorDescriptor* tensor, const void** address) {
  if (tensor) describe(tensor, rnn.type, part.rows, part.columns);
  if (!address) return;
  *address = part.rows == 0 || !weights ? nullptr
                                        : static_cast<const unsigned char*>(weights) +
                                              part.begin * element_bytes(rnn.type);
}

}  // namespace

ENTRY(cudnnCreateDropoutDescriptor)(DropoutDescriptor** descriptor) {
  return simgpu::create_descriptor(descriptor);
}
ENTRY(cudnnDestroyDropoutDescriptor)(DropoutDescriptor* descriptor) {
  return simgpu::destroy_descriptor(descriptor);
}

// One random state for each thread that the device can run at once.
ENTRY(cudnnDropoutGetStatesSize)(simgpu::CudnnHandle* handle, std::size_t* size) {
  constexpr int kMultiprocessors = 16, kThreadsOfOne = 39;  // CU_DEVICE_ATTRIBUTE_...
  if (!handle || !size) return simgpu::kCudnnBadParamNullPointer;
  int multiprocessors = 0, threads = 0;
  if (cuDeviceGetAttribute) {
    cuDeviceGetAttribute(&multiprocessors, kMultiprocessors, handle->device);
    cuDeviceGetAttribute(&threads, kThreadsOfOne, handle->device);
  }
  *size = kRandomStateBytes * static_cast<std::size_t>(multiprocessors) *
          static_cast<std::size_t>(threads);
  simgpu::assume("random states of cuDNN's dropout");
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnSetDropoutDescriptor)
(DropoutDescriptor* descriptor, simgpu::CudnnHandle*, float probability, void* states,
 std::size_t size, unsigned long long) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  descriptor->probability = probability;
  if (states) simgpu::forget(states, size);
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnRestoreDropoutDescriptor)
(DropoutDescriptor* descriptor, simgpu::CudnnHandle*, float probability, void*, std::size_t,
 unsigned long long) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  descriptor->probability = probability;
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnCreateRNNDescriptor)(RnnDescriptor** descriptor) {
  return simgpu::create_descriptor(descriptor);
}
ENTRY(cudnnDestroyRNNDescriptor)(RnnDescriptor* descriptor) {
  return simgpu::destroy_descriptor(descriptor);
}

ENTRY(cudnnSetRNNDescriptor_v8)
(RnnDescriptor* descriptor, int, int cell, int bias, int direction, int, int type, int, int,
 std::int32_t input, std::int32_t hidden, std::int32_t projection, std::int32_t layers,
 const DropoutDescriptor* dropout, std::uint32_t) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  if (cell < kRelu || cell > kGru || bias < kNoBias || bias > kRecurrentBias || input < 1 ||
      hidden < 1 || projection < 0 || projection > hidden || layers < 1)
    return simgpu::kCudnnBadParam;
  *descriptor = {.cell = cell,
                 .bias = bias,
                 .type = type,
                 .bidirectional = direction == 1,
                 .dropout = dropout && dropout->probability > 0,
                 .input = static_cast<std::size_t>(input),
                 .hidden = static_cast<std::size_t>(hidden),
                 .projection = static_cast<std::size_t>(projection),
                 .layers = static_cast<std::size_t>(layers)};
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnCreateRNNDataDescriptor)(RnnDataDescriptor** descriptor) {
  return simgpu::create_descriptor(descriptor);
}
ENTRY(cudnnDestroyRNNDataDescriptor)(RnnDataDescriptor* descriptor) {
  return simgpu::destroy_descriptor(descriptor);
}

ENTRY(cudnnSetRNNDataDescriptor)
(RnnDataDescriptor* descriptor, int type, int, int steps, int batch, int vector, const int*,
 const void*) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  if (steps < 1 || batch < 1 || vector < 1) return simgpu::kCudnnBadParam;
  *descriptor = {.type = type,
                 .steps = static_cast<std::size_t>(steps),
                 .batch = static_cast<std::size_t>(batch),
                 .vector = static_cast<std::size_t>(vector)};
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnGetRNNWeightSpaceSize)
(simgpu::CudnnHandle*, const RnnDescriptor* descriptor, std::size_t* size) {
  if (!descriptor || !size) return simgpu::kCudnnBadParamNullPointer;
  *size = descriptor->begin_of(descriptor->pseudo_layers()) * element_bytes(descriptor->type);
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnGetRNNWeightParams)
(simgpu::CudnnHandle*, const RnnDescriptor* descriptor, std::int32_t pseudo_layer, std::size_t,
 const void* weights, std::int32_t linear, CudnnTensorDescriptor* matrix,
 const void** matrix_address, CudnnTensorDescriptor* bias, const void** bias_address) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  if (pseudo_layer < 0 || linear < 0 ||
      static_cast<std::size_t>(pseudo_layer) >= descriptor->pseudo_layers())
    return simgpu::kCudnnBadParam;
  const auto layer = static_cast<std::size_t>(pseudo_layer);
  const auto index = static_cast<std::size_t>(linear);
  give(matrix_of(*descriptor, layer, index), *descriptor, weights, matrix, matrix_address);
  give(bias_of(*descriptor, layer, index), *descriptor, weights, bias, bias_address);
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnGetRNNTempSpaceSizes)
(simgpu::CudnnHandle*, const RnnDescriptor* descriptor, int mode, const RnnDataDescriptor* x,
 std::size_t* workspace, std::size_t* reserve) {
  constexpr int kTraining = 1;
  if (!descriptor || !x || !workspace) return simgpu::kCudnnBadParamNullPointer;
  const RnnDescriptor& rnn = *descriptor;
  const std::size_t positions = x->steps * x->batch, bytes = element_bytes(rnn.type);
  *workspace = positions * rnn.gates() * rnn.hidden * rnn.directions() * bytes;
  if (reserve) {
    const std::size_t kept =
        rnn.gates() * rnn.hidden + (rnn.cell == kLstm ? rnn.hidden : 0) + rnn.output();
    const std::size_t masked = rnn.dropout ? (rnn.layers - 1) * rnn.directions() * rnn.output() : 0;
    *reserve = mode == kTraining ? positions * (rnn.pseudo_layers() * kept + masked) * bytes : 0;
  }
  simgpu::assume("workspace and reserve of cuDNN's recurrent networks");
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnRNNForward)
(simgpu::CudnnHandle* handle, const RnnDescriptor*, int, const std::int32_t*,
 const RnnDataDescriptor*, const void* x, const RnnDataDescriptor* output, void* y, const void*,
 const void* hx, void* hy, const void*, const void* cx, void* cy, std::size_t, const void* weights,
 std::size_t, void* workspace, std::size_t, void* reserve) {
  static simgpu::LibraryKernel kernel("cudnnRNNForward", 9);
  if (!handle || !output) return simgpu::kCudnnBadParamNullPointer;
  kernel.launch(handle->stream, {x, y, hx, hy, cx, cy, weights, workspace, reserve});
  simgpu::forget(y, output->steps * output->batch * output->vector * element_bytes(output->type));
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnRNNBackwardData_v8)
(simgpu::CudnnHandle* handle, const RnnDescriptor*, const std::int32_t*, const RnnDataDescriptor*,
 const void* y, const void* dy, const RnnDataDescriptor*, void* dx, const void*, const void* hx,
 const void* dhy, void* dhx, const void*, const void* cx, const void* dcy, void* dcx, std::size_t,
 const void* weights, std::size_t, void* workspace, std::size_t, void* reserve) {
  static simgpu::LibraryKernel kernel("cudnnRNNBackwardData", 12);
  if (!handle) return simgpu::kCudnnBadParamNullPointer;
  kernel.launch(handle->stream,
                {y, dy, dx, hx, dhy, dhx, cx, dcy, dcx, weights, workspace, reserve});
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnRNNBackwardWeights_v8)
(simgpu::CudnnHandle* handle, const RnnDescriptor*, int, const std::int32_t*,
 const RnnDataDescriptor*, const void* x, const void*, const void* hx, const RnnDataDescriptor*,
 const void* y, std::size_t, void* dweights, std::size_t, void* workspace, std::size_t,
 void* reserve) {
  static simgpu::LibraryKernel kernel("cudnnRNNBackwardWeights", 6);
  if (!handle) return simgpu::kCudnnBadParamNullPointer;
  kernel.launch(handle->stream, {x, hx, y, dweights, workspace, reserve});
  return simgpu::kCudnnSuccess;
}
