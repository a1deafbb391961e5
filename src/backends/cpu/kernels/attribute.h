// Attribute: a named constant of a node, as the model gives it and as a kernel reads it.
#pragma once

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

// Attributes of one node, in no particular order; few, so looked up by walking them.
class Attributes {
 public:
  const Attribute* find(std::string_view name) const {
    for (const Attribute& attribute : list_)
      if (attribute.name == name) return &attribute;
    return nullptr;
  }
  bool has(std::string_view name) const { return find(name) != nullptr; }

  int64_t integer(std::string_view name, int64_t fallback = 0) const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::integer ? a->integer : fallback;
  }
  double number(std::string_view name, double fallback = 0) const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::number ? a->number : fallback;
  }
  std::string_view text(std::string_view name, std::string_view fallback = "") const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::text ? std::string_view(a->text) : fallback;
  }
  // Empty when absent.
  std::span<const int64_t> integers(std::string_view name) const {
    const Attribute* a = find(name);
    return a ? std::span<const int64_t>(a->integers) : std::span<const int64_t>();
  }
  std::span<const float> numbers(std::string_view name) const {
    const Attribute* a = find(name);
    return a ? std::span<const float>(a->numbers) : std::span<const float>();
  }
  std::span<const std::string> texts(std::string_view name) const {
    const Attribute* a = find(name);
    return a ? std::span<const std::string>(a->texts) : std::span<const std::string>();
  }
  const Tensor* tensor(std::string_view name) const {
    const Attribute* a = find(name);
    return a && a->kind == Attribute::Kind::tensor ? &a->tensor : nullptr;
  }

  Attribute& put(Attribute attribute) {
    erase(attribute.name);
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
  void erase(std::string_view name) {
    std::erase_if(list_, [&](const Attribute& a) { return a.name == name; });
  }
  size_t size() const { return list_.size(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<Attribute> list_;
};

}  // namespace hologram::kernels
