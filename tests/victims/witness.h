// What a victim says about itself: one JSON line per event on stdout, written before anybody else
// looks.
//
// A test compares a trace, or the simulated GPU's totals, with these lines. So they are made by the
// program from what it asked for and what it got, and carry the source lines of the call and of its
// callers, by which frames are checked.
//
//   {"event":"alloc","api":"cudaMalloc","kind":"device","address":"0x..","bytes":1048576,"asked":1048576,
//    "result":0,"thread":123,"frames":[["leaf.cpp",31,"leaf"],["leaf.cpp",40,"middle"]],"usage":{..}}
//
// `usage` is what simgpu_get_usage says right after the call, where the program runs on the
// simulated GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace victims {

// A function that a test looks for in a stack. Its line moves with HERE and with the calls below.
class Frame {
 public:
  Frame(const char* file, int line, const char* function);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  void at(int line) { line_ = line; }

 private:
  friend std::string frames_as_json();
  Frame* outer_;
  const char* file_;
  int line_;
  const char* function_;
};

struct Event {
  const char* event;
  const char* api;
  const char* kind;
  const void* address;
  uint64_t bytes;
  int result;
};

void say(const Event& event);

// The name of a CUDA call from its spelling: "cudaMalloc(&p, n)" gives "cudaMalloc", and
// "DRIVER_CALL(cuMemMap, a, n)" gives "cuMemMap".
std::string api_name(const char* spelling);

// Device that `usage` is about; 0 unless a victim works on another.
void watch_device(int device);

// A free-form line: {"event":NAME,...fields...}; `fields` is JSON without braces, or empty.
void say_raw(const char* event, const std::string& fields);

// What went wrong in the victim itself; the program ends with 1.
[[noreturn]] void give_up(const char* file, int line, const char* spelling, int result);

}  // namespace victims

// At the top of a function that tests look for.
#define VICTIM_FRAME victims::Frame victim_frame(__FILE__, __LINE__, __func__)

// A call of another such function: this frame stands at this line now.
#define HERE(expression) (victim_frame.at(__LINE__), (expression))

// An allocation: the call, what kind of memory, where the address is after it, how much was asked
// for.
#define ALLOCATES(call, kind, pointer, bytes)                                               \
  do {                                                                                      \
    victim_frame.at(__LINE__);                                                              \
    const int victim_result = static_cast<int>(call);                                       \
    victims::say({victim_result == 0 ? "alloc" : "fail", #call, kind,                       \
                  victim_result == 0 ? (const void*)(pointer) : nullptr, (uint64_t)(bytes), \
                  victim_result});                                                          \
  } while (0)

#define FREES(call, kind, pointer, bytes)                                            \
  do {                                                                               \
    victim_frame.at(__LINE__);                                                       \
    const void* const victim_address = (const void*)(pointer);                       \
    const int victim_result = static_cast<int>(call);                                \
    victims::say({victim_result == 0 ? "free" : "fail", #call, kind, victim_address, \
                  (uint64_t)(bytes), victim_result});                                \
  } while (0)

// Anything else that has to succeed.
#define SUCCEEDS(call)                                                                  \
  do {                                                                                  \
    const int victim_result = static_cast<int>(call);                                   \
    if (victim_result != 0) victims::give_up(__FILE__, __LINE__, #call, victim_result); \
  } while (0)

// A call that the test expects to give this result.
#define GIVES(expected, call)                                                                      \
  do {                                                                                             \
    const int victim_result = static_cast<int>(call);                                              \
    victims::say_raw("result", "\"api\":\"" + victims::api_name(#call) +                           \
                                   "\",\"result\":" + std::to_string(victim_result) +              \
                                   ",\"expected\":" + std::to_string(static_cast<int>(expected))); \
  } while (0)
