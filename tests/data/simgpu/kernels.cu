// The source of kernels.cubin: nvcc -arch=sm_80 -cubin -o kernels.cubin kernels.cu
__device__ int counter[25];
extern "C" __global__ void __launch_bounds__(128)
    scale(float* values, float factor, int count, char flag, double4 extra) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < count ? values[i] : 0;
  __syncthreads();
  if (i < count && flag) values[i] = tile[255 - threadIdx.x] * factor + float(extra.x + extra.w);
  if (i == 0) counter[3] = 1;
}
extern "C" __global__ void nothing() {
}
