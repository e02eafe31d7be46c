#include "stack/cfi_rule.h"

#include "stack/cfi_reader.h"
#include "stack/modules.h"

namespace vramtrack {
namespace {

constexpr uint64_t kBp = 6;
constexpr uint64_t kSp = 7;
constexpr uint64_t kReturnAddress = 16;

// Common Information Entry: what the entries of many functions share.
struct Cie {
  uintptr_t instructions = 0;
  uintptr_t end = 0;
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t pointer_encoding = 0;
  bool has_augmentation = false;
  bool signal_frame = false;
};

struct Fde {
  Cie cie;
  uintptr_t begin = 0;  // of the function
  uintptr_t end = 0;
  uintptr_t instructions = 0;
  uintptr_t instructions_end = 0;
};

bool read_cie(uintptr_t at, Cie& cie) {
  const uint32_t length = CfiReader(at, at + 4).fixed<uint32_t>();
  if (length == 0 || length == 0xffffffff) return false;
  cie.end = at + 4 + length;
  CfiReader in(at + 4, cie.end);
  if (in.fixed<uint32_t>() != 0) return false;
  const auto version = in.fixed<uint8_t>();
  if (version != 1 && version != 3) return false;
  const auto* augmentation = reinterpret_cast<const char*>(in.position());
  in.skip(std::strlen(augmentation) + 1);
  cie.code_alignment = in.uleb();
  cie.data_alignment = in.sleb();
  const uint64_t return_register = version == 1 ? in.fixed<uint8_t>() : in.uleb();
  if (return_register != kReturnAddress) return false;
  if (augmentation[0] == '\0') {
    cie.instructions = in.position();
    return in.ok();
  }
  if (augmentation[0] != 'z') return false;
  cie.has_augmentation = true;
  const uint64_t bytes = in.uleb();
  cie.instructions = in.position() + bytes;
  for (const char* letter = augmentation + 1; *letter != '\0'; ++letter) {
    switch (*letter) {
      case 'R':
        cie.pointer_encoding = in.fixed<uint8_t>();
        break;
      case 'P': {
        const auto encoding = in.fixed<uint8_t>();
        in.pointer(encoding & 0x7f, 0);
        break;
      }
      case 'L':
        in.fixed<uint8_t>();
        break;
      case 'S':
        cie.signal_frame = true;
        break;
      case 'B':
        break;
      default:
        return false;
    }
  }
  return in.ok() && cie.instructions <= cie.end;
}

// The table: pairs of 32-bit offsets from the header, function and entry, sorted by function.
uintptr_t find_fde(uintptr_t header, uintptr_t pc) {
  CfiReader in(header, header + 64);
  const auto version = in.fixed<uint8_t>();
  const auto frame_encoding = in.fixed<uint8_t>();
  const auto count_encoding = in.fixed<uint8_t>();
  const auto table_encoding = in.fixed<uint8_t>();
  constexpr uint8_t kOffsetsFromHeader = 0x3b;
  if (version != 1 || table_encoding != kOffsetsFromHeader) return 0;
  in.pointer(frame_encoding, header);
  const uintptr_t count = in.pointer(count_encoding, header);
  const uintptr_t table = in.position();
  if (!in.ok() || count == 0) return 0;
  const auto entry = [table](uintptr_t index, uintptr_t word) {
    return CfiReader(table + index * 8 + word * 4, UINTPTR_MAX).fixed<int32_t>();
  };
  const auto wanted = static_cast<int64_t>(pc - header);
  uintptr_t low = 0;
  uintptr_t high = count;
  while (high - low > 1) {
    const uintptr_t middle = low + (high - low) / 2;
    if (entry(middle, 0) <= wanted)
      low = middle;
    else
      high = middle;
  }
  if (entry(low, 0) > wanted) return 0;
  return header + static_cast<uintptr_t>(static_cast<int64_t>(entry(low, 1)));
}

bool read_fde(uintptr_t at, Fde& fde) {
  const uint32_t length = CfiReader(at, at + 4).fixed<uint32_t>();
  if (length == 0 || length == 0xffffffff) return false;
  fde.instructions_end = at + 4 + length;
  CfiReader in(at + 4, fde.instructions_end);
  const auto back = in.fixed<uint32_t>();
  if (back == 0 || !read_cie(at + 4 - back, fde.cie)) return false;
  fde.begin = in.pointer(fde.cie.pointer_encoding, 0);
  fde.end = fde.begin + in.pointer(fde.cie.pointer_encoding & 0x0f, 0);
  if (fde.cie.has_augmentation) in.skip(in.uleb());
  fde.instructions = in.position();
  return in.ok();
}

// Runs the instructions that describe how a function builds and clears its frame, up to one
// address.
class Machine {
 public:
  explicit Machine(const Fde& fde) : fde_(fde) {}

  CfiRule rule_at(uintptr_t pc) {
    pc_ = pc;
    if (!run(fde_.cie.instructions, fde_.cie.end)) return {};
    initial_ = row_;
    location_ = fde_.begin;
    if (!run(fde_.instructions, fde_.instructions_end)) return {};
    return row_.rule();
  }

 private:
  enum class Saved : uint8_t { same, at_cfa, at_bp, undefined, elsewhere };
  struct Place {
    Saved where = Saved::same;
    int64_t offset = 0;
  };
  struct Row {
    uint64_t cfa_register = kSp;
    int64_t cfa_offset = 0;
    bool cfa_through_bp = false;
    bool cfa_unknown = true;
    Place bp;
    Place return_address;

    [[nodiscard]] CfiRule rule() const {
      CfiRule rule;
      if (return_address.where == Saved::undefined) {
        rule.cfa = CfiRule::Cfa::outermost;
        return rule;
      }
      const bool usual = return_address.where == Saved::at_cfa && return_address.offset == -8;
      if (cfa_unknown || !usual || bp.where == Saved::elsewhere) return rule;
      if (cfa_through_bp)
        rule.cfa = CfiRule::Cfa::through_bp;
      else if (cfa_register == kSp)
        rule.cfa = CfiRule::Cfa::from_sp;
      else if (cfa_register == kBp)
        rule.cfa = CfiRule::Cfa::from_bp;
      rule.cfa_offset = static_cast<int32_t>(cfa_offset);
      rule.bp_offset = static_cast<int32_t>(bp.offset);
      if (bp.where == Saved::at_cfa) rule.bp = CfiRule::Bp::at_cfa;
      if (bp.where == Saved::at_bp) rule.bp = CfiRule::Bp::at_bp;
      return rule;
    }
  };

  Place* place(uint64_t number) {
    if (number == kBp) return &row_.bp;
    if (number == kReturnAddress) return &row_.return_address;
    return nullptr;  // of no use to us
  }
  void put(uint64_t number, Saved where, int64_t offset) {
    if (Place* at = place(number); at != nullptr) *at = {where, offset};
  }
  void restore(uint64_t number) {
    if (number == kBp) row_.bp = initial_.bp;
    if (number == kReturnAddress) row_.return_address = initial_.return_address;
  }
  void define_cfa(uint64_t number, int64_t offset) {
    row_.cfa_register = number;
    row_.cfa_offset = offset;
    row_.cfa_through_bp = false;
    row_.cfa_unknown = false;
  }

  // Of all expressions only those that gcc and clang write for realigned stacks: rbp + n, read or
  // taken as it is.
  static bool is_bp_plus(CfiReader& in, uint64_t bytes, bool read, int64_t& offset) {
    constexpr uint8_t kBaseBp = 0x76;
    constexpr uint8_t kDeref = 0x06;
    const uintptr_t end = in.position() + bytes;
    CfiReader expression(in.position(), end);
    in.skip(bytes);
    if (expression.fixed<uint8_t>() != kBaseBp) return false;
    offset = expression.sleb();
    if (read && expression.fixed<uint8_t>() != kDeref) return false;
    return expression.ok() && !expression.more();
  }

  // False once the row for pc_ is complete, by `location_` passing it.
  bool advance(uint64_t units) {
    location_ += units * fde_.cie.code_alignment;
    return location_ <= pc_;
  }

  bool run(uintptr_t at, uintptr_t end);
  bool run_extended(uint8_t instruction, CfiReader& in, bool& done);

  const Fde& fde_;
  uintptr_t pc_ = 0;
  uintptr_t location_ = 0;
  Row row_;
  Row initial_;
  static constexpr unsigned kMostRemembered = 8;
  Row remembered_[kMostRemembered];
  unsigned depth_ = 0;
};

bool Machine::run(uintptr_t at, uintptr_t end) {
  CfiReader in(at, end);
  while (in.more() && in.ok()) {
    const auto instruction = in.fixed<uint8_t>();
    const uint8_t low = instruction & 0x3f;
    switch (instruction & 0xc0) {
      case 0x40:
        if (!advance(low)) return true;
        break;
      case 0x80:
        put(low, Saved::at_cfa, static_cast<int64_t>(in.uleb()) * fde_.cie.data_alignment);
        break;
      case 0xc0:
        restore(low);
        break;
      default: {
        bool done = false;
        if (!run_extended(instruction, in, done)) return false;
        if (done) return true;
      }
    }
  }
  return in.ok();
}

bool Machine::run_extended(uint8_t instruction, CfiReader& in, bool& done) {
  const int64_t factor = fde_.cie.data_alignment;
  switch (instruction) {
    case 0x00:  // nop
      return true;
    case 0x01:  // set_loc
      location_ = in.pointer(fde_.cie.pointer_encoding, 0);
      done = location_ > pc_;
      return true;
    case 0x02:
      done = !advance(in.fixed<uint8_t>());
      return true;
    case 0x03:
      done = !advance(in.fixed<uint16_t>());
      return true;
    case 0x04:
      done = !advance(in.fixed<uint32_t>());
      return true;
    case 0x05: {  // offset_extended
      const uint64_t number = in.uleb();
      put(number, Saved::at_cfa, static_cast<int64_t>(in.uleb()) * factor);
      return true;
    }
    case 0x06:
      restore(in.uleb());
      return true;
    case 0x07:
      put(in.uleb(), Saved::undefined, 0);
      return true;
    case 0x08:
      put(in.uleb(), Saved::same, 0);
      return true;
    case 0x09: {  // register
      const uint64_t number = in.uleb();
      in.uleb();
      put(number, Saved::elsewhere, 0);
      return true;
    }
    case 0x0a:  // remember_state
      if (depth_ == kMostRemembered) return false;
      remembered_[depth_++] = row_;
      return true;
    case 0x0b:
      if (depth_ == 0) return false;
      row_ = remembered_[--depth_];
      return true;
    case 0x0c: {
      const uint64_t number = in.uleb();
      define_cfa(number, static_cast<int64_t>(in.uleb()));
      return true;
    }
    case 0x0d:
      define_cfa(in.uleb(), row_.cfa_offset);
      return true;
    case 0x0e:
      row_.cfa_offset = static_cast<int64_t>(in.uleb());
      return true;
    case 0x0f: {  // def_cfa_expression
      int64_t offset = 0;
      row_.cfa_unknown = !is_bp_plus(in, in.uleb(), /*read=*/true, offset);
      row_.cfa_through_bp = true;
      row_.cfa_offset = offset;
      return true;
    }
    case 0x10: {  // expression: where a register is saved
      const uint64_t number = in.uleb();
      int64_t offset = 0;
      const bool known = is_bp_plus(in, in.uleb(), /*read=*/false, offset);
      put(number, known ? Saved::at_bp : Saved::elsewhere, offset);
      return true;
    }
    case 0x11: {
      const uint64_t number = in.uleb();
      put(number, Saved::at_cfa, in.sleb() * factor);
      return true;
    }
    case 0x12: {
      const uint64_t number = in.uleb();
      define_cfa(number, in.sleb() * factor);
      return true;
    }
    case 0x13:
      row_.cfa_offset = in.sleb() * factor;
      return true;
    case 0x16: {  // val_expression
      const uint64_t number = in.uleb();
      in.skip(in.uleb());
      put(number, Saved::elsewhere, 0);
      return true;
    }
    case 0x2e:  // GNU_args_size
      in.uleb();
      return true;
    default:
      return false;
  }
}

}  // namespace

CfiRule read_cfi_rule(const Module& module, uintptr_t pc) {
  if (module.eh_frame_hdr == 0) return {};
  const uintptr_t at = find_fde(module.eh_frame_hdr, pc);
  Fde fde;
  if (at == 0 || !read_fde(at, fde)) return {};
  if (pc < fde.begin || pc >= fde.end || fde.cie.signal_frame) return {};
  return Machine(fde).rule_at(pc);
}

}  // namespace vramtrack
