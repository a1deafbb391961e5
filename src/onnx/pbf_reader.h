// protozero's reader, where a field of another wire type than its tag should have is an error of
// the file, in every build. (As it comes, it is taken for an error of the program: an assertion.)
#pragma once

#include <protozero/exception.hpp>

#define protozero_assert(condition) \
  (static_cast<bool>(condition) ? void() : throw protozero::unknown_pbf_wire_type_exception())
#include <protozero/pbf_reader.hpp>
