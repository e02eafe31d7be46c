// What the witness calls of libcupti, with types. For the files of this folder only
// (cupti/addresses.h says why).
#ifndef VRAMTRACK_TRACER_CUPTI_FUNCTIONS_H
#define VRAMTRACK_TRACER_CUPTI_FUNCTIONS_H

#include <cupti.h>

#include "cupti/addresses.h"

namespace vramtrack {

struct CuptiFunctions {
#define FUNCTION(name) decltype(&::name) name = nullptr;
#include "cupti/functions.def"
#undef FUNCTION
};

inline CuptiFunctions typed(const CuptiAddresses& addresses) {
  CuptiFunctions functions;
#define FUNCTION(name) functions.name = reinterpret_cast<decltype(functions.name)>(addresses.name);
#include "cupti/functions.def"
#undef FUNCTION
  return functions;
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_CUPTI_FUNCTIONS_H
