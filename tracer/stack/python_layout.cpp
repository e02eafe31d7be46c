#include "stack/python_layout.h"

#include <cstring>

namespace vramtrack {
namespace {

constexpr PythonLayout kLayouts[] = {
    {.minor = 9,
     .thread_frame = 24,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_instruction = 104,
     .frame_locals = 360,
     .code_file = 104,
     .code_name = 112,
     .code_first_line = 40,
     .code_line_table = 120,
     .ascii_header = 48,
     .compact_header = 72},
    {.minor = 10,
     .thread_frame = 24,
     .thread_cframe = 48,
     .cframe_previous = 8,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_instruction = 96,
     .frame_locals = 352,
     .code_file = 104,
     .code_name = 112,
     .code_first_line = 40,
     .code_line_table = 120,
     .ascii_header = 48,
     .compact_header = 72},
    {.minor = 11,
     .thread_cframe = 56,
     .cframe_frame = 8,
     .cframe_previous = 16,
     .frame_previous = 48,
     .frame_code = 32,
     .frame_instruction = 56,
     .frame_is_entry = 68,
     .frame_locals = 72,
     .code_file = 112,
     .code_name = 128,
     .code_first_line = 72,
     .code_line_table = 136,
     .code_instructions = 184,
     .ascii_header = 48,
     .compact_header = 72},
    {.minor = 12,
     .thread_cframe = 56,
     .cframe_frame = 0,
     .cframe_previous = 8,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_instruction = 56,
     .frame_owner = 70,
     .frame_locals = 72,
     .code_file = 112,
     .code_name = 128,
     .code_first_line = 68,
     .code_line_table = 136,
     .code_instructions = 192,
     .ascii_header = 40,
     .compact_header = 56},
};

// _Py_DebugOffsets is a row of 64-bit words in sections; a version may lengthen a section. The
// sections we read, by the index of their first word (each starts with the size of its structure).
struct Sections {
  unsigned minor;
  unsigned thread;
  unsigned frame;
  unsigned code;
};

// 3 words of head, 3 of the runtime, then the interpreter's.
constexpr unsigned kInterpreter = 6;
constexpr unsigned kThreadWords = 9;
constexpr Sections sections(unsigned minor, unsigned interpreter_words, unsigned frame_words) {
  const unsigned thread = kInterpreter + interpreter_words;
  return {minor, thread, thread + kThreadWords, thread + kThreadWords + frame_words};
}

// 3.14 grew while it was in the making; what fits is told by what makes sense.
constexpr Sections kSections[] = {
    sections(13, 13, 6), sections(14, 16, 8), sections(14, 15, 8),
    sections(14, 14, 8), sections(14, 16, 7), sections(14, 14, 7),
};

bool within(uint64_t offset, uint64_t size, uint64_t alignment) {
  return offset < size && offset % alignment == 0;
}

bool read_published(const Sections& at, const uint64_t* words, PythonLayout& layout) {
  const uint64_t* thread = words + at.thread;
  const uint64_t* frame = words + at.frame;
  const uint64_t* code = words + at.code;
  // thread: size prev next interp current_frame ...
  // frame:  size previous executable instr_ptr localsplus owner ...
  // code:   size filename name qualname linetable firstlineno argcount names kinds code_adaptive
  const bool sane = thread[0] > 128 && thread[0] < 8192 && within(thread[4], thread[0], 8) &&
                    frame[0] >= 72 && frame[0] <= 160 && within(frame[1], frame[0], 8) &&
                    within(frame[2], frame[0], 8) && within(frame[3], frame[0], 8) &&
                    within(frame[4], frame[0], 8) && within(frame[5], frame[0], 1) &&
                    frame[4] + 8 == frame[0] && code[0] > 128 && code[0] < 1024 &&
                    within(code[1], code[0], 8) && within(code[3], code[0], 8) &&
                    within(code[4], code[0], 8) && within(code[5], code[0], 4) &&
                    within(code[9], code[0], 8) && code[9] > code[4];
  if (!sane) return false;
  layout = PythonLayout{};
  layout.minor = static_cast<uint16_t>(at.minor);
  layout.thread_frame = static_cast<uint16_t>(thread[4]);
  layout.frame_previous = static_cast<uint16_t>(frame[1]);
  layout.frame_code = static_cast<uint16_t>(frame[2]);
  layout.frame_instruction = static_cast<uint16_t>(frame[3]);
  layout.frame_locals = static_cast<uint16_t>(frame[4]);
  layout.frame_owner = static_cast<uint16_t>(frame[5]);
  layout.code_file = static_cast<uint16_t>(code[1]);
  layout.code_name = static_cast<uint16_t>(code[3]);
  layout.code_line_table = static_cast<uint16_t>(code[4]);
  layout.code_first_line = static_cast<uint16_t>(code[5]);
  layout.code_instructions = static_cast<uint16_t>(code[9]);
  layout.ascii_header = 40;
  layout.compact_header = 56;
  return true;
}

}  // namespace

bool find_python_layout(unsigned minor, const void* runtime, PythonLayout& layout) {
  for (const PythonLayout& known : kLayouts) {
    if (known.minor != minor) continue;
    layout = known;
    return true;
  }
  if (runtime == nullptr || std::memcmp(runtime, "xdebugpy", 8) != 0) return false;
  const auto* words = static_cast<const uint64_t*>(runtime);
  const bool free_threaded = words[2] != 0;
  if (words[1] >> 16 != (0x300U | minor) || free_threaded) return false;
  for (const Sections& sections : kSections)
    if (sections.minor == minor && read_published(sections, words, layout)) return true;
  return false;
}

}  // namespace vramtrack
