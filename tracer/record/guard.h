// Says whether this thread is inside the tracer. What our own code calls, or what the driver calls
// on its own behalf, must not be traced as if the program had asked for it.
//
// Initial-exec TLS: the address is a constant offset from the thread pointer, so that reading it
// never allocates, which the dynamic TLS model may do inside the host's malloc.
#ifndef VRAMTRACK_TRACER_RECORD_GUARD_H
#define VRAMTRACK_TRACER_RECORD_GUARD_H

namespace vramtrack {

extern constinit thread_local int t_inside __attribute__((tls_model("initial-exec")));

class Guard {
 public:
  Guard() : outermost_(t_inside++ == 0) {}
  ~Guard() { --t_inside; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // False: the tracer called this, or a signal handler interrupted it. Forward, record nothing.
  [[nodiscard]] bool outermost() const { return outermost_; }

 private:
  bool outermost_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_GUARD_H
