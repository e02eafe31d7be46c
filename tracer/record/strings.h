// The strings that this file has defined: a table of hashes, without locks and without the texts.
// Two strings that share all 64 bits would be taken for one; with a million strings the chance is
// one in forty million.
#ifndef VRAMTRACK_TRACER_RECORD_STRINGS_H
#define VRAMTRACK_TRACER_RECORD_STRINGS_H

namespace vramtrack {

void reset_strings();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_STRINGS_H
