// The same structure as a pickle, written as JSON: MemoryViz and many scripts store it so.
#ifndef VRAMTRACK_ANALYZER_IMPORT_JSON_READER_H
#define VRAMTRACK_ANALYZER_IMPORT_JSON_READER_H

#include "import/byte_source.h"
#include "import/value_store.h"

namespace vramtrack {

// The document's value. Throws InputError.
Value read_json(ByteSource& source, ValueStore& store);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_JSON_READER_H
