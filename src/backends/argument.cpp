#include "backends/argument.h"

#include <string>

namespace hologram::backends {
namespace {

std::string list_names(std::span<const isa::Parameter> parameters) {
  std::string text;
  for (const isa::Parameter& parameter : parameters)
    text += (text.empty() ? "'" : ", '") + parameter.name + "'";
  return text;
}

std::string describe(bool is_array, DType type) {
  return fmt::format("{} {}", is_array ? "an array of" : "a scalar", name_of(type));
}

Status place(std::string_view owner, const isa::Parameter& parameter, const Argument& argument,
             uint64_t& word, uint64_t& length) {
  if (parameter.is_array != argument.is_array || parameter.type != argument.type)
    return fail(ErrorCode::type_mismatch, "kernel '{}': parameter '{}' is {}, not {}", owner,
                parameter.name, describe(parameter.is_array, parameter.type),
                describe(argument.is_array, argument.type));
  const uint64_t size = size_of(parameter.type);
  if (!parameter.is_array) {
    const bool fits = parameter.type == DType::boolean
                          ? argument.word <= 1
                          : size == 8 || argument.word >> 8 * size == 0;
    if (!fits)
      return fail(ErrorCode::invalid_argument, "kernel '{}': parameter '{}': bits {:#x} are no {}",
                  owner, parameter.name, argument.word, name_of(parameter.type));
    word = argument.word;
    length = 0;
    return {};
  }
  const bool writes = parameter.access != isa::Access::read;
  if (writes && !argument.writable)
    return fail(ErrorCode::invalid_argument,
                "kernel '{}' writes to array '{}', which is given read-only; pass writable memory",
                owner, parameter.name);
  if (argument.word == 0 && argument.length != 0)
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': array '{}' of {} elements has no address", owner, parameter.name,
                argument.length);
  if (argument.word % size != 0)
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': array '{}' starts at {:#x}, not a multiple of its {}-byte elements",
                owner, parameter.name, argument.word, size);
  if (argument.length > (~uint64_t{0} - argument.word) / size)
    return fail(ErrorCode::out_of_range,
                "kernel '{}': array '{}' of {} {} elements would pass the end of memory", owner,
                parameter.name, argument.length, name_of(parameter.type));
  word = argument.word;
  length = argument.length;
  return {};
}

}  // namespace

Status place_arguments(std::string_view owner, std::span<const isa::Parameter> parameters,
                       std::span<const Argument> arguments, uint64_t* words, uint64_t* lengths) {
  if (arguments.size() != parameters.size())
    return fail(ErrorCode::invalid_argument, "kernel '{}' has {} parameters ({}), {} were given",
                owner, parameters.size(), list_names(parameters), arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    size_t at = i;
    if (!argument.name.empty() && parameters[i].name != argument.name) {
      for (at = 0; at < parameters.size(); ++at)
        if (parameters[at].name == argument.name) break;
      if (at == parameters.size())
        return fail(ErrorCode::not_found, "kernel '{}' has no parameter '{}'; it has {}", owner,
                    argument.name, list_names(parameters));
      // Out of order: then every argument must say which it is, and none twice.
      for (size_t j = 0; j < arguments.size(); ++j) {
        if (arguments[j].name.empty())
          return fail(ErrorCode::invalid_argument,
                      "kernel '{}': argument {} has no name, but others are given by name out of "
                      "order; name all or none",
                      owner, j);
        if (j != i && arguments[j].name == argument.name)
          return fail(ErrorCode::already_exists, "kernel '{}': parameter '{}' is given twice",
                      owner, argument.name);
      }
    }
    HOLOGRAM_CHECK(place(owner, parameters[at], argument, words[at], lengths[at]));
  }
  return {};
}

}  // namespace hologram::backends
