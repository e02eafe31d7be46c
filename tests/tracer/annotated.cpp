// A program that uses the annotation API and nothing else. Without the tracer its calls do nothing.
#include <vramtrack/annotate.h>

#include <cstdio>
#include <string>
#include <thread>

int main() {
  vramtrack::push("load");
  {
    const vramtrack::Scope scope("inner");
    vramtrack::step(7);
  }
  vramtrack::pop();
  std::string name = "kv_cache";
  vramtrack::label(reinterpret_cast<const void*>(0x7f0000001000), 4096, name.c_str());
  name.assign("overwritten");  // the text was copied before the call returned
  std::thread([] { vramtrack::mark("from a thread"); }).join();
  vramtrack::mark(nullptr);
  std::puts(vramtrack_mark != nullptr ? "traced" : "alone");
  return 0;
}
