// Attribute: a named constant of a node, as the model gives it and as a kernel reads it.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/kernels/tensor.h"

namespace hologram::kernels {

struct Attribute {
  enum class Kind : uint8_t { integer, number, text, integers, numbers, texts, tensor };
  std::string name;
  Kind kind = Kind::integer;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<int64_t> integers;
  std::vector<float> numbers;
  std::vector<std::string> texts;
  Tensor tensor;
};

// The name of an attribute that is asked for: a number of 64 bits, which of a literal is worked out
// when it is compiled, also where that is for size. Names are told apart by it alone: of a million
// names two would share one in 1 of 10^7 cases, and who chooses names so that they do has just
// written another attribute into a model of their own. It fits a register: what is made of two
// parts and read as one waits for both, twenty times a step.
class AttributeName {
 public:
  template <size_t N>
  consteval AttributeName(const char (&literal)[N])
      : number_(number_of(std::string_view(literal, N - 1))) {}
  template <typename T>
  requires(std::convertible_to<const T&, std::string_view> && !std::is_array_v<T>)
      AttributeName(const T& text)
      : number_(number_of(text)) {}

  uint64_t number() const { return number_; }

 private:
  static constexpr uint64_t number_of(std::string_view text) {
    uint64_t number = 14695981039346656037u;
    for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return number;
  }

  uint64_t number_;
};

// Attributes of one node, in no particular order; few, so looked up by walking them.
class Attributes {
 public:
  const Attribute* find(AttributeName name) const;
  bool has(AttributeName name) const { return find(name) != nullptr; }

  int64_t integer(AttributeName name, int64_t fallback = 0) const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::integer ? a->integer : fallback;
  }
  double number(AttributeName name, double fallback = 0) const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::number ? a->number : fallback;
  }
  std::string_view text(AttributeName name, std::string_view fallback = {}) const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::text ? std::string_view(a->text) : fallback;
  }
  // Empty when absent.
  std::span<const int64_t> integers(AttributeName name) const {
    const Attribute* a = find(name);
    return a ? std::span<const int64_t>(a->integers) : std::span<const int64_t>();
  }
  std::span<const float> numbers(AttributeName name) const {
    const Attribute* a = find(name);
    return a ? std::span<const float>(a->numbers) : std::span<const float>();
  }
  std::span<const std::string> texts(AttributeName name) const {
    const Attribute* a = find(name);
    return a ? std::span<const std::string>(a->texts) : std::span<const std::string>();
  }
  const Tensor* tensor(AttributeName name) const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::tensor ? &a->tensor : nullptr;
  }

  Attribute& put(Attribute attribute) {
    erase(attribute.name);
    numbers_.push_back(AttributeName(attribute.name).number());
    return list_.emplace_back(std::move(attribute));
  }
  void set(std::string name, int64_t value) {
    put({.name = std::move(name), .kind = Attribute::Kind::integer, .integer = value});
  }
  void set(std::string name, double value) {
    put({.name = std::move(name), .kind = Attribute::Kind::number, .number = value});
  }
  void set(std::string name, std::string value) {
    put({.name = std::move(name), .kind = Attribute::Kind::text, .text = std::move(value)});
  }
  void set(std::string name, std::vector<int64_t> value) {
    put({.name = std::move(name), .kind = Attribute::Kind::integers, .integers = std::move(value)});
  }
  void set(std::string name, std::vector<float> value) {
    put({.name = std::move(name), .kind = Attribute::Kind::numbers, .numbers = std::move(value)});
  }
  void set(std::string name, std::vector<std::string> value) {
    put({.name = std::move(name), .kind = Attribute::Kind::texts, .texts = std::move(value)});
  }
  void set(std::string name, Tensor value) {
    put({.name = std::move(name), .kind = Attribute::Kind::tensor, .tensor = std::move(value)});
  }
  void erase(AttributeName name);
  size_t size() const { return list_.size(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<Attribute> list_;
  std::vector<uint64_t> numbers_;  // of their names
};

}  // namespace hologram::kernels
