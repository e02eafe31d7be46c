# The `format-check` target fails where clang-format would change a file; `format` changes it.
# It is part of every build where clang-format is found, so that style is never a review remark.
find_program(VRAMTRACK_CLANG_FORMAT clang-format)
if(VRAMTRACK_CLANG_FORMAT)
  file(GLOB_RECURSE vramtrack_format_sources CONFIGURE_DEPENDS
    include/*.h tracer/*.h tracer/*.cpp analyzer/*.h analyzer/*.cpp
    simgpu/*.h simgpu/*.cpp tests/*.h tests/*.cpp tests/*.cu)
  set(format_stamp "${CMAKE_BINARY_DIR}/format.stamp")
  add_custom_command(OUTPUT "${format_stamp}"
    COMMAND "${VRAMTRACK_CLANG_FORMAT}" --dry-run --Werror ${vramtrack_format_sources}
    COMMAND "${CMAKE_COMMAND}" -E touch "${format_stamp}"
    DEPENDS ${vramtrack_format_sources} "${PROJECT_SOURCE_DIR}/.clang-format"
    COMMENT "Checking the format of the sources" VERBATIM)
  if(vramtrack_format_sources)
    add_custom_target(format-check DEPENDS "${format_stamp}")
    add_custom_target(format
      COMMAND "${VRAMTRACK_CLANG_FORMAT}" -i ${vramtrack_format_sources} VERBATIM)
  endif()
endif()
