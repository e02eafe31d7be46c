#include "import/value_store.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr uint32_t kIndexBits = 29;
constexpr uint32_t kIndexMask = (1U << kIndexBits) - 1;
constexpr int64_t kSmallMax = (int64_t{1} << (kIndexBits - 1)) - 1;
constexpr int64_t kSmallMin = -kSmallMax - 1;
constexpr size_t kTextBlock = size_t{64} * 1024;
constexpr uint32_t kNoPart = 0;

// Twice the input, so that with the model that is built from it the whole stays below three times;
// the constant is for small files, whose tables are never full.
constexpr uint64_t kBudgetFree = 16ULL << 20;
constexpr uint64_t kBudgetRatio = 2;

int64_t small_number(uint32_t bits) {
  return static_cast<int64_t>(static_cast<uint64_t>(bits) << (64 - kIndexBits)) >>
         (64 - kIndexBits);
}

}  // namespace

void Budget::charge(uint64_t bytes) {
  used_ += bytes;
  if (used_ <= limit_) return;
  limit_ = kBudgetFree + kBudgetRatio * input_bytes_();
  if (used_ > limit_)
    throw InputError(
        fmt::format("needs more than {} MiB of memory to read, which no snapshot of its size does",
                    limit_ >> 20));
}

uint32_t ValueStore::tagged(Value::Kind kind, uint64_t index) const {
  if (index > kIndexMask) throw InputError("holds more values than this reader can count");
  return static_cast<uint32_t>(kind) << kIndexBits | static_cast<uint32_t>(index);
}

uint32_t ValueStore::number(int64_t value) {
  if (value >= kSmallMin && value <= kSmallMax)
    return static_cast<uint32_t>(Value::Kind::small) << kIndexBits |
           (static_cast<uint32_t>(value) & kIndexMask);
  push(numbers_, static_cast<uint64_t>(value));
  return tagged(value < 0 ? Value::Kind::negative : Value::Kind::natural, numbers_.size() - 1);
}

uint32_t ValueStore::natural(uint64_t value) {
  if (value <= static_cast<uint64_t>(kSmallMax)) return number(static_cast<int64_t>(value));
  push(numbers_, value);
  return tagged(Value::Kind::natural, numbers_.size() - 1);
}

uint32_t ValueStore::real(double value) {
  push(numbers_, std::bit_cast<uint64_t>(value));
  return tagged(Value::Kind::real, numbers_.size() - 1);
}

const char* ValueStore::keep(std::string_view text) {
  if (text.empty()) return "";
  if (text.size() > text_left_) {
    const size_t block = std::max(kTextBlock, text.size());
    budget_.charge(block);
    text_.push_back(std::make_unique_for_overwrite<char[]>(block));
    text_left_ = block;
    // The end of the block moves towards its start: what is left is the front.
  }
  char* at = text_.back().get() + (text_left_ - text.size());
  text_left_ -= text.size();
  std::memcpy(at, text.data(), text.size());
  return at;
}

uint32_t ValueStore::string(std::string_view text) {
  if (const auto found = string_ids_.find(text); found != string_ids_.end())
    return tagged(Value::Kind::string, found->second);
  const char* kept = keep(text);
  push(strings_, Text{kept, text.size()});
  budget_.charge(64);  // the entry of the index
  const auto id = static_cast<uint32_t>(strings_.size() - 1);
  string_ids_.emplace(std::string_view(kept, text.size()), id);
  return tagged(Value::Kind::string, id);
}

uint32_t ValueStore::cell_index() {
  if (cells_.size() == 0) push(cells_, kNoPart);  // index 0 means: no part
  if (cells_.size() % 2 != 0) push(cells_, 0U);   // parts and headers are 8-byte aligned
  return static_cast<uint32_t>(cells_.size() / 2);
}

uint32_t ValueStore::container(Value::Kind kind) {
  const uint32_t bits = tagged(kind, cell_index());
  push(cells_, kNoPart);
  push(cells_, kNoPart);
  return bits;
}

uint32_t ValueStore::list() {
  return container(Value::Kind::list);
}
uint32_t ValueStore::dict() {
  return container(Value::Kind::dict);
}

void ValueStore::append_part(uint32_t container, uint32_t first_word,
                             std::span<const uint32_t> values) {
  const uint32_t part = cell_index();
  if (part > kIndexMask) throw InputError("holds more values than this reader can count");
  push(cells_, first_word);
  push(cells_, kNoPart);
  for (const uint32_t value : values) push(cells_, value);
  const size_t header = size_t{container & kIndexMask} * 2;
  const uint32_t last = cells_[header + 1];
  if (last == kNoPart) {
    cells_[header] = part;
  } else {
    cells_[size_t{last} * 2 + 1] = part;
  }
  cells_[header + 1] = part;
}

void ValueStore::extend(uint32_t list, std::span<const uint32_t> items) {
  if (items.empty()) return;
  append_part(list, static_cast<uint32_t>(items.size()), items);
}

void ValueStore::update(uint32_t dict, std::span<const uint32_t> keys_and_values) {
  if (keys_and_values.empty()) return;
  scratch_keys_.clear();
  scratch_values_.clear();
  for (size_t i = 0; i + 1 < keys_and_values.size(); i += 2) {
    scratch_keys_.push_back(keys_and_values[i]);
    scratch_values_.push_back(keys_and_values[i + 1]);
  }
  append_part(dict, shape(scratch_keys_), scratch_values_);
}

uint32_t ValueStore::shape(std::span<const uint32_t> keys) {
  std::string key(reinterpret_cast<const char*>(keys.data()), keys.size_bytes());
  const auto [entry, added] =
      shape_ids_.try_emplace(std::move(key), static_cast<uint32_t>(shapes_.size()));
  if (added) {
    budget_.charge(keys.size_bytes() * 2 + 128);
    shapes_.emplace_back(keys.begin(), keys.end());
  }
  return entry->second;
}

bool Value::is_none() const {
  return bits_ == ValueStore::kNone;
}

std::optional<uint64_t> Value::natural() const {
  if (store_ == nullptr) return std::nullopt;
  switch (kind()) {
    case Kind::small:
      return static_cast<uint64_t>(small_number(bits_));
    case Kind::natural:
    case Kind::negative:
      return store_->numbers_[bits_ & kIndexMask];
    case Kind::special:
      return is_none() ? std::nullopt : std::optional<uint64_t>(bits_ == ValueStore::kTrue);
    case Kind::real: {
      const double value = std::bit_cast<double>(store_->numbers_[bits_ & kIndexMask]);
      if (!(value >= 0 && value < 0x1p63)) return std::nullopt;
      return static_cast<uint64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> Value::real() const {
  if (store_ == nullptr) return std::nullopt;
  switch (kind()) {
    case Kind::small:
      return static_cast<double>(small_number(bits_));
    case Kind::natural:
      return static_cast<double>(store_->numbers_[bits_ & kIndexMask]);
    case Kind::negative:
      return static_cast<double>(static_cast<int64_t>(store_->numbers_[bits_ & kIndexMask]));
    case Kind::real:
      return std::bit_cast<double>(store_->numbers_[bits_ & kIndexMask]);
    default:
      return std::nullopt;
  }
}

std::optional<bool> Value::boolean() const {
  if (store_ == nullptr || is_none()) return std::nullopt;
  if (const auto number = natural()) return *number != 0;
  return std::nullopt;
}

std::string_view Value::string() const {
  if (store_ == nullptr || kind() != Kind::string) return {};
  const auto& text = store_->strings_[bits_ & kIndexMask];
  return {text.data, text.size};
}

void Value::each(const std::function<void(Value)>& visit) const {
  if (store_ == nullptr || !is_list()) return;
  const auto& cells = store_->cells_;
  uint32_t part = cells[size_t{bits_ & kIndexMask} * 2];
  while (part != kNoPart) {
    const size_t at = size_t{part} * 2;
    for (size_t i = 0; i < cells[at]; ++i) visit(Value(store_, cells[at + 2 + i]));
    part = cells[at + 1];
  }
}

void Value::each_pair(const std::function<void(Value, Value)>& visit) const {
  if (store_ == nullptr || !is_dict()) return;
  const auto& cells = store_->cells_;
  uint32_t part = cells[size_t{bits_ & kIndexMask} * 2];
  while (part != kNoPart) {
    const size_t at = size_t{part} * 2;
    const auto& keys = store_->shapes_[cells[at]];
    for (size_t i = 0; i < keys.size(); ++i)
      visit(Value(store_, keys[i]), Value(store_, cells[at + 2 + i]));
    part = cells[at + 1];
  }
}

Value Value::find(std::string_view key) const {
  Value found;
  if (store_ == nullptr || !is_dict()) return found;
  const auto known = store_->string_ids_.find(key);
  if (known == store_->string_ids_.end()) return found;
  const uint32_t wanted = static_cast<uint32_t>(Kind::string) << kIndexBits | known->second;
  const auto& cells = store_->cells_;
  uint32_t part = cells[size_t{bits_ & kIndexMask} * 2];
  while (part != kNoPart) {
    const size_t at = size_t{part} * 2;
    const auto& keys = store_->shapes_[cells[at]];
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i] == wanted) found = Value(store_, cells[at + 2 + i]);
    part = cells[at + 1];
  }
  return found;
}

size_t Value::count() const {
  size_t total = 0;
  if (store_ == nullptr || (!is_list() && !is_dict())) return total;
  const auto& cells = store_->cells_;
  for (uint32_t part = cells[size_t{bits_ & kIndexMask} * 2]; part != kNoPart;
       part = cells[size_t{part} * 2 + 1]) {
    const uint32_t word = cells[size_t{part} * 2];
    total += is_list() ? word : store_->shapes_[word].size();
  }
  return total;
}

std::string Value::text(size_t limit) const {
  std::string out;
  if (store_ == nullptr || is_none()) return "None";
  switch (kind()) {
    case Kind::special:
      return bits_ == ValueStore::kTrue ? "True" : "False";
    case Kind::small:
      return std::to_string(small_number(bits_));
    case Kind::natural:
      return std::to_string(*natural());
    case Kind::negative:
      return std::to_string(static_cast<int64_t>(*natural()));
    case Kind::real:
      return fmt::format("{}", *real());
    case Kind::string:
      return std::string(string().substr(0, limit));
    case Kind::list:
      return fmt::format("list of {}", count());
    case Kind::dict:
      return fmt::format("dictionary of {}", count());
  }
  return out;
}

}  // namespace vramtrack
