# VRAMTRACK_ZSTD_LINKS, VRAMTRACK_ZSTD_ARCHIVE: a static zstd that goes into preloaded libraries, where
# its symbols stay: opening the host's copy would mean dlopen in a hook. Debian compiles the archive
# for PIE only; hidden by --exclude-libs its symbols are local, and that is good enough.
include(CheckCSourceCompiles)

find_library(VRAMTRACK_ZSTD_ARCHIVE libzstd.a)
if(VRAMTRACK_ZSTD_ARCHIVE)
  set(CMAKE_REQUIRED_LIBRARIES "${VRAMTRACK_ZSTD_ARCHIVE}")
  set(CMAKE_REQUIRED_LINK_OPTIONS -shared -Wl,-z,defs -Wl,--exclude-libs,ALL)
  set(CMAKE_REQUIRED_FLAGS -fPIC)
  check_c_source_compiles("
    #define ZSTD_STATIC_LINKING_ONLY
    #include <zstd.h>
    void* context(void* m, size_t n) { return ZSTD_initStaticCCtx(m, n); }
    size_t pack(ZSTD_CCtx* c, void* o, size_t n, void* i, size_t m) {
      return ZSTD_compressCCtx(c, o, n, i, m, 1);
    }
    int main(void) { return 0; }" VRAMTRACK_ZSTD_LINKS)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  unset(CMAKE_REQUIRED_FLAGS)
endif()
