// A document of nested lists, dictionaries and scalars, in about as many bytes as its file has.
//
// A snapshot is a million dictionaries with the same eight keys. A value is 32 bits; a dictionary
// keeps the id of its key sequence (its shape, stored once) and its values; large numbers, strings
// and containers lie in tables. Nothing is ever freed before the whole store is, nothing here
// recurses, and cycles are harmless, because readers descend to a fixed depth.
//
//   31..29 kind   28..0 the small number itself, or an index
//
//   list:  [first part, last part]          part: [count, next part, items ...]
//   dict:  [first part, last part]          part: [shape, next part, values ...]
//
// Danger: the input decides how much is stored. Every block of memory is charged against
// a budget that grows with the bytes of the input; beyond it the input is refused.
#ifndef VRAMTRACK_ANALYZER_IMPORT_VALUE_STORE_H
#define VRAMTRACK_ANALYZER_IMPORT_VALUE_STORE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vramtrack {

// Grows without copying, so that growth never needs twice the memory.
template <typename T>
class ChunkedVector {
 public:
  static constexpr size_t kChunk = size_t{1} << 13;

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool full() const { return size_ == chunks_.size() * kChunk; }
  T& operator[](size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  void push_back(T value) {
    if (full()) chunks_.push_back(std::make_unique_for_overwrite<T[]>(kChunk));
    (*this)[size_++] = value;
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

class Budget {
 public:
  // `input_bytes` tells how much input there is, as far as it is known at the time of the call.
  explicit Budget(std::function<uint64_t()> input_bytes) : input_bytes_(std::move(input_bytes)) {}
  void charge(uint64_t bytes);

 private:
  std::function<uint64_t()> input_bytes_;
  uint64_t used_ = 0;
  uint64_t limit_ = 0;
};

class ValueStore;

// A reference into a store. Asking for what is not there gives nothing, never an error: snapshots
// of ten versions differ in their keys.
class Value {
 public:
  enum class Kind : uint32_t { special, small, natural, negative, real, string, list, dict };

  Value() = default;
  Value(const ValueStore* store, uint32_t bits) : store_(store), bits_(bits) {}

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(bits_ >> 29); }
  [[nodiscard]] bool is_list() const { return kind() == Kind::list; }
  [[nodiscard]] bool is_dict() const { return kind() == Kind::dict; }
  [[nodiscard]] bool is_none() const;
  [[nodiscard]] bool is_string() const { return kind() == Kind::string; }

  // Negative numbers come as their two's complement.
  [[nodiscard]] std::optional<uint64_t> natural() const;
  [[nodiscard]] std::optional<double> real() const;
  [[nodiscard]] std::optional<bool> boolean() const;
  [[nodiscard]] std::string_view string() const;  // empty where it is none
  [[nodiscard]] Value find(std::string_view key) const;
  void each(const std::function<void(Value)>& visit) const;              // items of a list
  void each_pair(const std::function<void(Value, Value)>& visit) const;  // of a dictionary
  [[nodiscard]] size_t count() const;
  // The same for the same object: what was shared in the file is shared here.
  [[nodiscard]] uint32_t identity() const { return bits_; }
  // As text for people, at most `limit` characters, containers in short.
  [[nodiscard]] std::string text(size_t limit = 200) const;

 private:
  friend class ValueStore;
  const ValueStore* store_ = nullptr;
  uint32_t bits_ = 0;
};

class ValueStore {
 public:
  explicit ValueStore(std::function<uint64_t()> input_bytes) : budget_(std::move(input_bytes)) {}

  // Making values. Bits of one store mean nothing in another.
  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kFalse = 1;
  static constexpr uint32_t kTrue = 2;
  uint32_t number(int64_t value);
  uint32_t natural(uint64_t value);
  uint32_t real(double value);
  uint32_t string(std::string_view text);
  uint32_t list();
  uint32_t dict();
  void extend(uint32_t list, std::span<const uint32_t> items);
  void update(uint32_t dict, std::span<const uint32_t> keys_and_values);
  [[nodiscard]] static Value::Kind kind(uint32_t bits) {
    return static_cast<Value::Kind>(bits >> 29);
  }

  [[nodiscard]] Value value(uint32_t bits) const { return {this, bits}; }
  Budget& budget() { return budget_; }

 private:
  friend class Value;
  struct Text {
    const char* data;
    size_t size;
  };

  template <typename T>
  void push(ChunkedVector<T>& to, T value) {
    if (to.full()) budget_.charge(sizeof(T) * ChunkedVector<T>::kChunk);
    to.push_back(value);
  }
  uint32_t tagged(Value::Kind kind, uint64_t index) const;
  uint32_t cell_index();  // where the next part or header starts
  uint32_t container(Value::Kind kind);
  void append_part(uint32_t container, uint32_t first_word, std::span<const uint32_t> values);
  uint32_t shape(std::span<const uint32_t> keys);
  const char* keep(std::string_view text);

  Budget budget_;
  ChunkedVector<uint32_t> cells_;
  ChunkedVector<uint64_t> numbers_;
  ChunkedVector<Text> strings_;
  std::unordered_map<std::string_view, uint32_t> string_ids_;
  std::vector<std::unique_ptr<char[]>> text_;
  size_t text_left_ = 0;
  std::vector<std::vector<uint32_t>> shapes_;
  std::unordered_map<std::string, uint32_t> shape_ids_;
  std::vector<uint32_t> scratch_keys_;
  std::vector<uint32_t> scratch_values_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_VALUE_STORE_H
