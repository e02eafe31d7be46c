# vramtrack_warnings(<target>): warnings are errors, and clang-tidy where it was asked for.
find_program(VRAMTRACK_CCACHE ccache)
if(VRAMTRACK_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${VRAMTRACK_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${VRAMTRACK_CCACHE}")
endif()

if(VRAMTRACK_CLANG_TIDY)
  find_program(VRAMTRACK_CLANG_TIDY_PROGRAM clang-tidy REQUIRED)
endif()

function(vramtrack_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-qual -Wformat=2 -Wundef -Wno-missing-field-initializers -Werror)
  # C has no non-virtual destructors to warn about.
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-Wno-non-virtual-dtor")
    endif()
  endforeach()
  if(VRAMTRACK_CLANG_TIDY)
    set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY
      "${PROJECT_SOURCE_DIR}/scripts/tidy;${VRAMTRACK_CLANG_TIDY_PROGRAM};--quiet;--extra-arg=-Wno-unknown-warning-option;--extra-arg=-fconstexpr-steps=100000000")
  endif()
endfunction()

# vramtrack_sanitize(<target>): the analyzer and its tests run under the sanitizers of the preset.
# The shim does not: a preloaded library must not drag a sanitizer runtime into its host.
function(vramtrack_sanitize target)
  if(VRAMTRACK_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${VRAMTRACK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${VRAMTRACK_SANITIZE})
  endif()
endfunction()
