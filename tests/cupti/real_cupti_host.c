/* A program that asks NVIDIA's own libcupti on a machine without a driver, and says what it was
 * told. */
#include <dlfcn.h>
#include <stdio.h>

static void callback(void) {
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  void* library = dlopen(arguments[1], RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 2;
  }
  unsigned version = 0;
  void* subscriber = NULL;
  int (*get_version)(unsigned*) = (int (*)(unsigned*))dlsym(library, "cuptiGetVersion");
  int (*subscribe)(void**, void (*)(void), void*) =
      (int (*)(void**, void (*)(void), void*))dlsym(library, "cuptiSubscribe");
  int (*register_callbacks)(void (*)(void), void (*)(void)) =
      (int (*)(void (*)(void), void (*)(void)))dlsym(library, "cuptiActivityRegisterCallbacks");
  int (*enable)(int) = (int (*)(int))dlsym(library, "cuptiActivityEnable");
  printf("version %d", get_version(&version));
  printf(" %u\n", version);
  printf("subscribe %d\n", subscribe(&subscriber, callback, NULL));
  printf("register %d\n", register_callbacks(callback, callback));
  printf("enable %d\n", enable(49));
  return 0;
}
