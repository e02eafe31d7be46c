#include "import/unpickler.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>

#include "import/pickle_opcodes.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

using namespace pickle;  // the opcodes

constexpr uint64_t kMaxStringBytes = 16ULL << 20;
constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr size_t kMaxLongBytes = 1024;
constexpr size_t kMaxMarks = 1000;
// Python's pickler writes batches of 1000 items. An item that is added one at a time while this
// much is open above the last mark sits in a nest that no snapshot has.
constexpr size_t kMaxOpen = 5000;
constexpr size_t kMemoSlack = 1024;

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) out.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  return out;
}

class Unpickler {
 public:
  Unpickler(ByteSource& source, ValueStore& store) : in_(source), store_(store) {}

  Value run() {
    while (true) {
      const int op = in_.get();
      if (op < 0) truncated();
      if (op == kStop) break;
      step(static_cast<uint8_t>(op));
    }
    if (stack_.empty()) bad("it stops without a value");
    return store_.value(stack_.back());
  }

 private:
  [[noreturn]] void bad(std::string_view what) const {
    throw InputError(fmt::format("is not a usable pickle: {} (at byte {})", what, in_.position()));
  }
  [[noreturn]] void truncated() const { bad("it ends in the middle"); }
  [[noreturn]] void refuse(std::string_view what) const {
    throw InputError(
        fmt::format("is a pickle that asks for {}; only lists, dictionaries and plain values are "
                    "read, never code (at byte {})",
                    what, in_.position()));
  }

  template <typename T>
  T fixed() {
    T value{};
    if (!in_.read(&value, sizeof value)) truncated();
    return value;
  }
  std::string line() {
    auto text = in_.line(kMaxLineBytes);
    if (!text) bad("a line has no end");
    return *std::move(text);
  }

  void push(uint32_t value) {
    if (stack_.size() == stack_.capacity()) {
      const size_t capacity = std::max<size_t>(1024, stack_.capacity() * 2);
      store_.budget().charge((capacity - stack_.capacity()) * sizeof(uint32_t));
      stack_.reserve(capacity);
    }
    stack_.push_back(value);
  }
  [[nodiscard]] size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t pop() {
    if (stack_.size() <= floor()) bad("it takes a value from an empty stack");
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  uint32_t top() const {
    if (stack_.size() <= floor()) bad("it needs a value on an empty stack");
    return stack_.back();
  }
  // The values above the last mark, which is removed; they stay on the stack until drop().
  std::span<const uint32_t> marked() {
    if (marks_.empty()) bad("it needs a mark that was never set");
    mark_ = marks_.back();
    marks_.pop_back();
    return std::span(stack_).subspan(mark_);
  }
  void drop() { stack_.resize(mark_); }

  uint32_t list_of(std::span<const uint32_t> items) {
    const uint32_t list = store_.list();
    store_.extend(list, items);
    return list;
  }
  void push_tuple(size_t size) {
    if (stack_.size() < floor() + size) bad("a tuple needs more values than there are");
    const uint32_t list = list_of(std::span(stack_).last(size));
    stack_.resize(stack_.size() - size);
    push(list);
  }
  void expect(uint32_t value, Value::Kind kind, std::string_view what) const {
    if (ValueStore::kind(value) != kind) bad(what);
  }
  void check_nesting() const {
    if (stack_.size() > floor() + kMaxOpen) bad("its containers are nested too deeply");
  }

  void append_one() {
    check_nesting();
    const uint32_t item = pop();
    expect(top(), Value::Kind::list, "it appends to what is no list");
    store_.extend(top(), std::span(&item, 1));
  }
  void append_marked() {
    const auto items = marked();
    if (mark_ == 0 || mark_ <= floor()) bad("it appends to nothing");
    const uint32_t list = stack_[mark_ - 1];
    expect(list, Value::Kind::list, "it appends to what is no list");
    store_.extend(list, items);
    drop();
  }
  void set_one() {
    check_nesting();
    uint32_t pair[2];
    pair[1] = pop();
    pair[0] = pop();
    check_key(pair[0]);
    expect(top(), Value::Kind::dict, "it sets an item of what is no dictionary");
    store_.update(top(), pair);
  }
  void set_marked() {
    const auto items = marked();
    if (mark_ == 0 || mark_ <= floor()) bad("it sets items of nothing");
    const uint32_t dict = stack_[mark_ - 1];
    expect(dict, Value::Kind::dict, "it sets an item of what is no dictionary");
    update(dict, items);
    drop();
  }
  void update(uint32_t dict, std::span<const uint32_t> items) {
    if (items.size() % 2 != 0) bad("a dictionary has a key without a value");
    for (size_t i = 0; i < items.size(); i += 2) check_key(items[i]);
    store_.update(dict, items);
  }
  void check_key(uint32_t key) const {
    if (ValueStore::kind(key) == Value::Kind::dict) bad("a dictionary is used as a key");
  }

  std::string bytes(uint64_t size) {
    if (size > kMaxStringBytes) bad(fmt::format("a string claims {} bytes", size));
    if (const auto left = in_.left(); left && size > *left) truncated();
    std::string text;
    while (text.size() < size) {  // in steps, so that a false length costs nothing
      const size_t part = std::min<uint64_t>(size - text.size(), uint64_t{64} * 1024);
      const size_t before = text.size();
      text.resize(before + part);
      if (!in_.read(text.data() + before, part)) truncated();
    }
    return text;
  }
  void push_string(uint64_t size) { push(store_.string(bytes(size))); }

  // Little-endian two's complement of any length. What exceeds 64 bits keeps its low 64.
  void push_long(uint64_t size) {
    if (size > kMaxLongBytes) bad(fmt::format("a number claims {} bytes", size));
    uint8_t digits[kMaxLongBytes] = {};
    if (!in_.read(digits, size)) truncated();
    const bool negative = size != 0 && (digits[size - 1] & 0x80) != 0;
    uint64_t value = negative ? ~uint64_t{0} : 0;
    std::memcpy(&value, digits, std::min<uint64_t>(size, sizeof value));
    push(negative ? store_.number(static_cast<int64_t>(value)) : store_.natural(value));
  }
  void push_decimal(std::string_view text) {
    if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
    if (text == "00" || text == "01") {
      push(text == "01" ? ValueStore::kTrue : ValueStore::kFalse);
      return;
    }
    const char* end = text.data() + text.size();
    int64_t number = 0;
    if (const auto r = std::from_chars(text.data(), end, number);
        r.ec == std::errc() && r.ptr == end) {
      push(store_.number(number));
      return;
    }
    uint64_t natural = 0;
    const auto r = std::from_chars(text.data(), end, natural);
    if (r.ptr != end || r.ec == std::errc::invalid_argument || text.empty())
      bad(fmt::format("'{}' is no number", printable(text)));
    push(store_.natural(r.ec == std::errc::result_out_of_range ? ~uint64_t{0} : natural));
  }
  void push_float_line() {
    const std::string text = line();
    double value = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
    if (r.ec != std::errc() || r.ptr != text.data() + text.size())
      bad(fmt::format("'{}' is no number", printable(text)));
    push(store_.real(value));
  }
  void push_quoted_line() {
    const std::string text = line();
    if (text.size() < 2 || text.front() != text.back()) bad("a string has no quotes");
    push(store_.string(unescape(std::string_view(text).substr(1, text.size() - 2))));
  }
  static std::string unescape(std::string_view text);

  void put(uint64_t index) {
    // A pickler numbers its memo from 0; a gap this large only serves to fill memory.
    if (index > memo_.size() + kMemoSlack) bad(fmt::format("memo index {} is out of range", index));
    while (memo_.size() <= index) {
      if (memo_.full()) store_.budget().charge(sizeof(uint32_t) * ChunkedVector<uint32_t>::kChunk);
      memo_.push_back(kUnset);
    }
    memo_[index] = top();
  }
  void get(uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kUnset)
      bad(fmt::format("memo index {} was never set", index));
    push(memo_[index]);
  }
  uint64_t line_index() {
    const std::string text = line();
    uint64_t index = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), index);
    if (r.ec != std::errc() || r.ptr != text.data() + text.size()) bad("a memo index is no number");
    return index;
  }

  [[noreturn]] void refuse_stack_global() {
    std::string name = "an object by name";
    if (stack_.size() >= 2)
      name = fmt::format("the global {}.{}",
                         printable(store_.value(stack_[stack_.size() - 2]).string()),
                         printable(store_.value(stack_.back()).string()));
    refuse(name);
  }
  [[noreturn]] void refuse_named_line() {
    const std::string module = in_.line(200).value_or("?");
    const std::string name = in_.line(200).value_or("?");
    refuse(fmt::format("the global {}.{}", printable(module), printable(name)));
  }
  void check_frame(uint64_t size) const {
    if (const auto left = in_.left(); left && size > *left) truncated();
  }

  void step(uint8_t op);
  bool scalar(uint8_t op);
  bool text(uint8_t op);
  bool container(uint8_t op);
  bool memo(uint8_t op);
  [[noreturn]] void forbidden(uint8_t op);

  static constexpr uint32_t kUnset = ~uint32_t{0};

  ByteSource& in_;
  ValueStore& store_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  ChunkedVector<uint32_t> memo_;
  size_t mark_ = 0;
};

std::string Unpickler::unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    switch (const char c = text[++i]; c) {
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case '\\':
      case '\'':
      case '"':
        out.push_back(c);
        break;
      default:  // \x41 and its kin stay as they are: no snapshot has any, and nothing is lost
        out.push_back('\\');
        out.push_back(c);
    }
  }
  return out;
}

bool Unpickler::scalar(uint8_t op) {
  switch (op) {
    case kNone:
      push(ValueStore::kNone);
      return true;
    case kNewTrue:
      push(ValueStore::kTrue);
      return true;
    case kNewFalse:
      push(ValueStore::kFalse);
      return true;
    case kBinInt:
      push(store_.number(fixed<int32_t>()));
      return true;
    case kBinInt1:
      push(store_.number(fixed<uint8_t>()));
      return true;
    case kBinInt2:
      push(store_.number(fixed<uint16_t>()));
      return true;
    case kInt:
    case kLong:
      push_decimal(line());
      return true;
    case kLong1:
      push_long(fixed<uint8_t>());
      return true;
    case kLong4:
      push_long(fixed<uint32_t>());
      return true;
    case kFloat:
      push_float_line();
      return true;
    case kBinFloat: {
      const auto big = fixed<uint64_t>();
      push(store_.real(std::bit_cast<double>(__builtin_bswap64(big))));
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::text(uint8_t op) {
  switch (op) {
    case kString:
      push_quoted_line();
      return true;
    case kUnicode:
      push(store_.string(unescape(line())));
      return true;
    case kBinString:
    case kBinUnicode:
    case kBinBytes:
      push_string(fixed<uint32_t>());
      return true;
    case kShortBinString:
    case kShortBinUnicode:
    case kShortBinBytes:
      push_string(fixed<uint8_t>());
      return true;
    case kBinUnicode8:
    case kBinBytes8:
    case kByteArray8:
      push_string(fixed<uint64_t>());
      return true;
    default:
      return false;
  }
}

bool Unpickler::container(uint8_t op) {
  switch (op) {
    case kEmptyList:
    case kEmptyTuple:
    case kEmptySet:
      push(store_.list());
      return true;
    case kEmptyDict:
      push(store_.dict());
      return true;
    case kList:
    case kTuple:
    case kFrozenSet: {
      const uint32_t list = list_of(marked());
      drop();
      push(list);
      return true;
    }
    case kDict: {
      const uint32_t dict = store_.dict();
      update(dict, marked());
      drop();
      push(dict);
      return true;
    }
    case kTuple1:
    case kTuple2:
    case kTuple3:
      push_tuple(op - kTuple1 + 1U);
      return true;
    case kAppend:
      append_one();
      return true;
    case kAppends:
    case kAddItems:
      append_marked();
      return true;
    case kSetItem:
      set_one();
      return true;
    case kSetItems:
      set_marked();
      return true;
    default:
      return false;
  }
}

bool Unpickler::memo(uint8_t op) {
  switch (op) {
    case kPut:
      put(line_index());
      return true;
    case kBinPut:
      put(fixed<uint8_t>());
      return true;
    case kLongBinPut:
      put(fixed<uint32_t>());
      return true;
    case kMemoize:
      put(memo_.size());
      return true;
    case kGet:
      get(line_index());
      return true;
    case kBinGet:
      get(fixed<uint8_t>());
      return true;
    case kLongBinGet:
      get(fixed<uint32_t>());
      return true;
    default:
      return false;
  }
}

void Unpickler::forbidden(uint8_t op) {
  switch (op) {
    case kGlobal:
    case kInst:
      refuse_named_line();
    case kStackGlobal:
      refuse_stack_global();
    case kReduce:
    case kNewObj:
    case kNewObjEx:
    case kObj:
      refuse("a call of an object");
    case kBuild:
      refuse("setting the state of an object");
    case kPersId:
    case kBinPersId:
      refuse("a persistent id");
    case kExt1:
    case kExt2:
    case kExt4:
      refuse("an extension code");
    case kNextBuffer:
    case kReadonlyBuffer:
      refuse("a buffer outside the file");
    default:
      bad(fmt::format("opcode 0x{:02x} is unknown", op));
  }
}

void Unpickler::step(uint8_t op) {
  switch (op) {
    case kProto:
      if (const auto version = fixed<uint8_t>(); version > 5)
        bad(fmt::format("it has protocol {}, newer than 5", version));
      return;
    case kFrame:
      check_frame(fixed<uint64_t>());
      return;
    case kMark:
      if (marks_.size() == kMaxMarks) bad("its containers are nested too deeply");
      marks_.push_back(stack_.size());
      return;
    case kPop:
      if (!marks_.empty() && stack_.size() == marks_.back()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return;
    case kPopMark:
      marked();
      drop();
      return;
    case kDup:
      push(top());
      return;
    default:
      break;
  }
  if (memo(op) || scalar(op) || text(op) || container(op)) return;
  forbidden(op);
}

}  // namespace

Value read_pickle(ByteSource& source, ValueStore& store) {
  return Unpickler(source, store).run();
}

}  // namespace vramtrack
