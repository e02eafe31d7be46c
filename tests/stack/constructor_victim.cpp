// A library whose constructor waits for a thread that takes a stack: what takes the loader's lock
// there never returns.
#include <cstdint>
#include <thread>

extern "C" uint32_t capture();
extern "C" {
__attribute__((visibility("default"))) uint32_t id_from_constructor = 0;
}

__attribute__((constructor)) static void start() {
  std::thread([] { id_from_constructor = capture(); }).join();
}
