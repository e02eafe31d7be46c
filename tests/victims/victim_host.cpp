// victim_host MODE [ARGUMENT]: ends its process, its threads or its children in every way that
// programs do, with GPU memory in use. It is not linked to CUDA: it opens libvictim_plugin.so,
// which is.
//
// What a run must print and how it must end is in host_modes.json beside this file: the same with
// and without anybody watching.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string own_folder() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return ".";
  path[size] = '\0';
  return std::string(path).substr(0, std::string(path).rfind('/'));
}

struct Plugin {
  int (*allocate)(void**, size_t) = nullptr;
  int (*release)(void*) = nullptr;
  int (*run)() = nullptr;
};

Plugin open_plugin(const char* file, int flags) {
  void* library = dlopen((own_folder() + "/" + file).c_str(), flags);
  if (library == nullptr) {
    std::fprintf(stderr, "victim: %s\n", dlerror());
    std::exit(1);
  }
  Plugin plugin;
  plugin.allocate = reinterpret_cast<int (*)(void**, size_t)>(dlsym(library, "plugin_allocate"));
  plugin.release = reinterpret_cast<int (*)(void*)>(dlsym(library, "plugin_free"));
  plugin.run = reinterpret_cast<int (*)()>(dlsym(library, "plugin_run"));
  return plugin;
}

Plugin local_plugin() {
  return open_plugin("libvictim_plugin.so", RTLD_NOW | RTLD_LOCAL);
}

void* allocate(const Plugin& plugin, size_t bytes) {
  void* block = nullptr;
  const int result = plugin.allocate(&block, bytes);
  if (result != 0) {
    std::fprintf(stderr, "victim: allocation of %zu bytes gave %d\n", bytes, result);
    std::exit(1);
  }
  return block;
}

int report(int status) {
  if (WIFEXITED(status)) {
    std::printf("child exited %d\n", WEXITSTATUS(status));
  } else {
    std::printf("child killed by %d\n", WTERMSIG(status));
  }
  return 0;
}

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 1;
  return report(status);
}

// ---- the library and how it is opened

int run_local(const char*) {
  const int result = local_plugin().run();
  std::printf("plugin gave %d\n", result);
  return result;
}

int run_deepbind(const char*) {
  const int result =
      open_plugin("libvictim_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND).run();
  std::printf("plugin gave %d\n", result);
  return result;
}

int run_global(const char*) {
  const int result = open_plugin("libvictim_plugin.so", RTLD_NOW | RTLD_GLOBAL).run();
  std::printf("plugin gave %d\n", result);
  return result;
}

int run_constructor(const char*) {
  const int result = open_plugin("libvictim_plugin_constructor.so", RTLD_NOW | RTLD_LOCAL).run();
  std::printf("plugin gave %d\n", result);
  return result;
}

// A library that comes and goes takes its runtime with it, and the next one begins anew.
int run_reload(const char*) {
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    void* library = dlopen((own_folder() + "/libvictim_plugin.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 1;
    auto run = reinterpret_cast<int (*)()>(dlsym(library, "plugin_run"));
    good += run() == 0 ? 1 : 0;
    dlclose(library);
  }
  std::printf("%d loads of 20\n", good);
  return 0;
}

// The same with a library that registers a kernel and launches it; absent where it was built
// without nvcc.
int run_reload_kernels(const char*) {
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    void* library =
        dlopen((own_folder() + "/libvictim_kernel_plugin.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 1;
    auto run = reinterpret_cast<int (*)()>(dlsym(library, "kernel_plugin_run"));
    good += run() == 0 ? 1 : 0;
    dlclose(library);
  }
  std::printf("%d loads of 20\n", good);
  return 0;
}

int run_next(const char*) {
  void* library = dlopen((own_folder() + "/libvictim_next.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  auto check = library == nullptr
                   ? nullptr
                   : reinterpret_cast<int (*)()>(dlsym(library, "victim_next_check"));
  if (check == nullptr) return 1;
  const int result = check();
  std::printf("RTLD_NEXT gave %d\n", result);
  return result;
}

// ---- the driver, as old runtimes and careful programs ask for it

int run_four_arguments(const char*) {
  using FourArguments = int (*)(const char*, void**, int, unsigned long long);
  local_plugin().run();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 1;
  auto get = reinterpret_cast<FourArguments>(dlsym(driver, "cuGetProcAddress"));
  void* init = nullptr;
  void* allocate_address = nullptr;
  const int first = get("cuInit", &init, 2000, 0);
  const int second = get("cuMemAlloc", &allocate_address, 3020, 0);
  void* itself = nullptr;
  const int third = get("cuGetProcAddress", &itself, 11030, 0);
  std::printf("cuGetProcAddress with four arguments gave %d %d %d, addresses %d %d %d\n", first,
              second, third, init != nullptr, allocate_address != nullptr, itself != nullptr);
  return 0;
}

// A program that asks whether CUDA is there must not be told so by a tracer.
int run_is_cuda_there(const char*) {
  std::printf("cuInit in the global scope: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != nullptr);
  std::printf("cudaMalloc in the global scope: %d\n", dlsym(RTLD_DEFAULT, "cudaMalloc") != nullptr);
  return 0;
}

// ---- children

int run_fork(const char*) {
  const Plugin plugin = local_plugin();
  void* block = allocate(plugin, 1 << 20);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) std::exit(7);  // runs the exit handlers of a process that used the GPU
  wait_for(child);
  return plugin.release(block);
}

int run_raw_fork(const char*) {
  const Plugin plugin = local_plugin();
  void* block = allocate(plugin, 1 << 20);
  std::fflush(nullptr);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  const pid_t child = _Fork();
#else
  const pid_t child = static_cast<pid_t>(syscall(SYS_fork));
#endif
  if (child == 0) _exit(8);
  wait_for(child);
  return plugin.release(block);
}

int run_vfork(const char*) {
  const Plugin plugin = local_plugin();
  void* block = allocate(plugin, 1 << 20);
  std::fflush(nullptr);
  const pid_t child = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): the subject
  if (child == 0) _exit(9);
  wait_for(child);
  return plugin.release(block);
}

// CUDA does not survive a fork: the child gets an error, and the parent goes on.
int run_fork_use(const char*) {
  const Plugin plugin = local_plugin();
  void* block = allocate(plugin, 1 << 20);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(plugin.run());
  wait_for(child);
  return plugin.release(block);
}

// The child is the one that uses the GPU, as after a fork in a server that has not.
int run_fork_first(const char*) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const Plugin plugin = local_plugin();
    void* block = allocate(plugin, 2 << 20);
    std::exit(plugin.release(block));
  }
  return wait_for(child);
}

int run_fork_storm(const char*) {
  const Plugin plugin = local_plugin();
  void* block = allocate(plugin, 1 << 20);
  std::fflush(nullptr);
  std::atomic<bool> stop{false};
  std::thread allocator([&] {
    while (!stop.load()) plugin.release(allocate(plugin, 4096));
  });
  int good = 0;
  for (int i = 0; i < 40; ++i) {
    const pid_t child = fork();  // somebody may hold any lock at this moment
    if (child == 0) _exit(0);
    int status = -1;
    waitpid(child, &status, 0);
    good += status == 0 ? 1 : 0;
  }
  stop.store(true);
  allocator.join();
  std::printf("%d children of 40 exited 0\n", good);
  return plugin.release(block);
}

int run_exec(const char*) {
  const Plugin plugin = local_plugin();
  allocate(plugin, 1 << 20);
  std::printf("before exec\n");
  std::fflush(nullptr);
  execl("/bin/echo", "echo", "after exec", static_cast<char*>(nullptr));
  return 1;
}

int run_system(const char*) {
  const Plugin plugin = local_plugin();
  void* block = allocate(plugin, 1 << 20);
  std::fflush(nullptr);
  const int status = std::system("echo from the shell");
  report(status);
  return plugin.release(block);
}

// ---- ends

int run_exit_in_use(const char*) {
  allocate(local_plugin(), 1 << 20);
  std::exit(3);
}

int run_quick_exit(const char*) {
  allocate(local_plugin(), 1 << 20);
  std::fflush(nullptr);
  _exit(4);
}

int run_abort(const char*) {
  allocate(local_plugin(), 1 << 20);
  std::fflush(nullptr);
  std::abort();
}

int run_segfault(const char*) {
  allocate(local_plugin(), 1 << 20);
  std::fflush(nullptr);
  std::raise(SIGSEGV);
  return 1;
}

int run_terminate(const char*) {
  allocate(local_plugin(), 1 << 20);
  std::fflush(nullptr);
  throw std::runtime_error("not caught on purpose");
}

// Threads that still allocate while the process exits.
int run_threads_at_exit(const char*) {
  static const Plugin plugin = local_plugin();
  std::atomic<int> started{0};
  static std::atomic<int>* const all = &started;
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      for (int round = 0;; ++round) {
        void* block = nullptr;
        if (plugin.allocate(&block, 4096) == 0) plugin.release(block);
        if (round == 0) ++*all;
      }
    }).detach();
  }
  while (started.load() < 4) sched_yield();
  std::printf("threads run\n");
  std::fflush(nullptr);
  std::exit(0);
}

// main ends first; the process lives as long as its last thread.
int run_main_ends_first(const char*) {
  static const Plugin plugin = local_plugin();
  std::thread([] {
    for (int i = 0; i < 100; ++i) plugin.release(allocate(plugin, 4096));
    std::printf("thread outlived main\n");
    std::fflush(nullptr);
  }).detach();
  pthread_exit(nullptr);
}

// Allocates in an atexit handler and in the destructor of a thread-local object, when much is torn
// down.
int run_late(const char*) {
  static const Plugin plugin = local_plugin();
  struct AtThreadEnd {
    ~AtThreadEnd() { plugin.release(allocate(plugin, 4096)); }
  };
  std::atexit([] {
    plugin.release(allocate(plugin, 4096));
    std::printf("at exit\n");
  });
  std::thread([] {
    static thread_local AtThreadEnd end;
    (void)&end;
  }).join();
  std::printf("thread ended\n");
  return 0;
}

int run_many_threads(const char*) {
  const Plugin plugin = local_plugin();
  std::atomic<int> done{0};
  for (int wave = 0; wave < 10; ++wave) {
    std::vector<std::thread> threads;
    threads.reserve(20);
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&] {
        plugin.release(allocate(plugin, 8192));
        ++done;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::printf("%d threads\n", done.load());
  return 0;
}

// ---- exceptions

struct Holder {
  const Plugin& plugin;
  void* block;
  Holder(const Plugin& p, size_t bytes) : plugin(p), block(allocate(p, bytes)) {}
  ~Holder() { plugin.release(block); }
};

__attribute__((noinline)) void throw_deep(const Plugin& plugin, int depth) {
  const Holder holder(plugin, 4096u << depth);
  if (depth == 0) throw std::runtime_error("thrown on purpose");
  throw_deep(plugin, depth - 1);
}

int run_exception(const char*) {
  const Plugin plugin = local_plugin();
  int caught = 0;
  for (int i = 0; i < 100; ++i) {
    try {
      throw_deep(plugin, 4);
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  std::printf("caught %d\n", caught);
  return 0;
}

// A cancelled thread unwinds by force, without any handler to stop it.
int run_cancel(const char*) {
  static const Plugin plugin = local_plugin();
  static std::atomic<bool> ready{false};
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        const Holder holder(plugin, 65536);
        ready.store(true);
        for (;;) pause();
      },
      nullptr);
  while (!ready.load()) sched_yield();
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("cancelled %d\n", result == PTHREAD_CANCELED);
  return 0;
}

// Allocates for ever, and says after every call how many are done: whoever kills it knows how many
// events must be found. ARGUMENT is the number of live blocks.
int run_endless(const char* argument) {
  const Plugin plugin = local_plugin();
  const size_t live = argument != nullptr ? std::strtoul(argument, nullptr, 10) : 8;
  std::vector<void*> blocks(live == 0 ? 1 : live, nullptr);
  for (unsigned long long done = 0;;) {
    void*& block = blocks[done % blocks.size()];
    if (block != nullptr) plugin.release(block);
    block = allocate(plugin, 512 * (1 + done % 64));
    ++done;
    const std::string line = std::to_string(done) + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return 1;
  }
}

struct Mode {
  const char* name;
  int (*run)(const char*);
};

constexpr Mode modes[] = {
    {"local", run_local},
    {"deepbind", run_deepbind},
    {"global", run_global},
    {"constructor", run_constructor},
    {"reload", run_reload},
    {"reload-kernels", run_reload_kernels},
    {"rtld-next", run_next},
    {"four-arguments", run_four_arguments},
    {"is-cuda-there", run_is_cuda_there},
    {"fork", run_fork},
    {"fork-use", run_fork_use},
    {"raw-fork", run_raw_fork},
    {"vfork", run_vfork},
    {"fork-first", run_fork_first},
    {"fork-storm", run_fork_storm},
    {"exec", run_exec},
    {"system", run_system},
    {"exit", run_exit_in_use},
    {"quick-exit", run_quick_exit},
    {"abort", run_abort},
    {"segfault", run_segfault},
    {"terminate", run_terminate},
    {"threads-at-exit", run_threads_at_exit},
    {"main-ends-first", run_main_ends_first},
    {"late", run_late},
    {"many-threads", run_many_threads},
    {"exception", run_exception},
    {"cancel", run_cancel},
    {"endless", run_endless},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Mode& mode : modes) {
    if (argc > 1 && std::strcmp(argv[1], mode.name) == 0) {
      return mode.run(argc > 2 ? argv[2] : nullptr);
    }
  }
  std::fprintf(stderr, "usage: %s MODE [ARGUMENT]\n", argv[0]);
  for (const Mode& mode : modes) std::fprintf(stderr, "  %s\n", mode.name);
  return 2;
}
