// Reads a pickle as data: protocols 0 to 5, builtin containers and scalars only.
//
// A pickle is a program for a stack machine, and with its full instruction set it can call anything
// in the reader's process. Every opcode that names, calls or builds an object is refused, with the
// name of what it asked for. What remains cannot do more than fill memory, and that is budgeted
// (value_store.h); there is no recursion that a deeply nested file could exhaust.
#ifndef VRAMTRACK_ANALYZER_IMPORT_UNPICKLER_H
#define VRAMTRACK_ANALYZER_IMPORT_UNPICKLER_H

#include "import/byte_source.h"
#include "import/value_store.h"

namespace vramtrack {

// The value that the pickle leaves. Throws InputError.
Value read_pickle(ByteSource& source, ValueStore& store);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_UNPICKLER_H
