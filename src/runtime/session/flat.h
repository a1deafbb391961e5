// Reading lists and texts of the plan section, which may be missing where they are empty.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/plan_generated.h"

namespace hologram::runtime {

inline std::string_view text(const flatbuffers::String* s) {
  return s ? s->string_view() : std::string_view();
}

// In place; archives are little-endian, and so are the machines that run them.
template <typename T>
std::span<const T> items(const flatbuffers::Vector<T>* v) {
  return v ? std::span<const T>(v->data(), v->size()) : std::span<const T>();
}
template <typename T>
std::vector<T> copy(const flatbuffers::Vector<T>* v) {
  const std::span<const T> all = items(v);
  return {all.begin(), all.end()};
}
inline std::vector<std::string> copy(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* v) {
  std::vector<std::string> result;
  if (v)
    for (const flatbuffers::String* s : *v) result.emplace_back(text(s));
  return result;
}

}  // namespace hologram::runtime
