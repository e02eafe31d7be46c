// Which files a rehearsal may write, and where its other writes go.
//
// A rehearsed script is the user's real script: it would overwrite checkpoints with values that
// nothing computed. So a regular file that is older than the rehearsal is never written, replaced
// or removed; the writes go to a copy in a scratch folder, which the script's own processes then
// read in its place. What the rehearsal made itself is its own.
#pragma once

#include <limits.h>

namespace simgpu {

struct Path {
  char text[PATH_MAX];
};

class Overlay {
 public:
  static Overlay& instance();

  bool active() const { return active_; }

  // True where the path (relative to the folder `at`) is an old file that is kept.
  bool keeps(int at, const char* path) const;
  bool is_folder(int at, const char* path) const;

  // The scratch copy's name. `contents`: it starts as a copy of the file, unless it exists already.
  // False on failure.
  bool scratch(int at, const char* path, bool contents, Path* copy);
  // The scratch copy, where there is one already.
  bool find_scratch(int at, const char* path, Path* copy) const;

  // Copies a file's bytes; 0 or an errno.
  static int copy_file(const char* from, const char* to);

 private:
  Overlay();
  bool name_of(int at, const char* path, Path* copy) const;
  bool allowed(const char* absolute) const;
  void say(const char* path);

  bool active_ = false;
  long long start_s_ = 0, start_ns_ = 0;
  Path folder_;
  const char* allow_ = nullptr;
};

}  // namespace simgpu
