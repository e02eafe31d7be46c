/* Initialises the driver and allocates, by dlsym, as a program without the CUDA runtime does. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) {
    printf("%s\n", dlerror());
    return 2;
  }
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*allocate)(unsigned long long*, unsigned long) =
      (int (*)(unsigned long long*, unsigned long))dlsym(driver, "cuMemAlloc_v2");
  unsigned long long pointer = 0;
  printf("init %d\n", init(0));
  printf("alloc %d\n", allocate(&pointer, 512));
  return 0;
}
