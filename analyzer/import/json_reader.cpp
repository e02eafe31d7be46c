#include "import/json_reader.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr size_t kMaxDepth = 64;
// Items are handed to the store in batches, so that an open list costs little.
constexpr size_t kBatch = 1000;

// The parser wants iterators; this one reads the source as it goes.
class Bytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Bytes() = default;
  explicit Bytes(ByteSource& source) : source_(&source) {}
  char operator*() const { return static_cast<char>(source_->peek()); }
  Bytes& operator++() {
    source_->get();
    return *this;
  }
  bool operator==(const Bytes& other) const { return at_end() == other.at_end(); }
  bool operator!=(const Bytes& other) const { return !(*this == other); }

 private:
  [[nodiscard]] bool at_end() const { return source_ == nullptr || source_->peek() < 0; }
  ByteSource* source_ = nullptr;
};

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(ValueStore& store) : store_(store) {}

  bool null() override { return add(ValueStore::kNone); }
  bool boolean(bool value) override { return add(value ? ValueStore::kTrue : ValueStore::kFalse); }
  bool number_integer(number_integer_t value) override { return add(store_.number(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(store_.natural(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return add(store_.real(value));
  }
  bool string(string_t& value) override { return add(store_.string(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*count*/) override { return open(store_.dict()); }
  bool start_array(size_t /*count*/) override { return open(store_.list()); }
  bool key(string_t& value) override {
    open_.back().items.push_back(store_.string(value));
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    throw InputError(fmt::format("is not valid JSON (at byte {})", position));
  }

  [[nodiscard]] uint32_t root() const { return root_; }

 private:
  struct Open {
    uint32_t container;
    std::vector<uint32_t> items;
  };

  bool add(uint32_t value) {
    if (open_.empty()) {
      root_ = value;
      return true;
    }
    Open& open = open_.back();
    open.items.push_back(value);
    if (open.items.size() >= kBatch && open.items.size() % 2 == 0) flush(open);
    return true;
  }
  bool open(uint32_t container) {
    if (open_.size() == kMaxDepth) throw InputError("is JSON that is nested too deeply");
    open_.push_back({container, {}});
    return true;
  }
  bool close() {
    flush(open_.back());
    const uint32_t container = open_.back().container;
    open_.pop_back();
    return add(container);
  }
  void flush(Open& open) {
    if (ValueStore::kind(open.container) == Value::Kind::list) {
      store_.extend(open.container, open.items);
    } else {
      store_.update(open.container, open.items);
    }
    open.items.clear();
  }

  ValueStore& store_;
  std::vector<Open> open_;
  uint32_t root_ = ValueStore::kNone;
};

}  // namespace

Value read_json(ByteSource& source, ValueStore& store) {
  Builder builder(store);
  if (!nlohmann::json::sax_parse(Bytes(source), Bytes(), &builder))
    throw InputError("is not valid JSON");
  return store.value(builder.root());
}

}  // namespace vramtrack
