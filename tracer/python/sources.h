// Python sources, put into the library when it is built (embed.cmake).
#ifndef VRAMTRACK_TRACER_PYTHON_SOURCES_H
#define VRAMTRACK_TRACER_PYTHON_SOURCES_H

namespace vramtrack {

// NOLINTBEGIN(bugprone-dynamic-static-initializers): they are constants
extern const char kLabelsSource[];       // labels.py
extern const char kSteadyStepsSource[];  // steady_steps.py
extern const char kHelperSource[];       // helper.py
extern const char kHoldersSource[];      // holders.py
extern const char kModuleSource[];       // python/vramtrack/__init__.py
// NOLINTEND(bugprone-dynamic-static-initializers)

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_PYTHON_SOURCES_H
