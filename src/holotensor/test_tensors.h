// Tensors for tests: ordinary ones, and ones made to be awkward.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "holotensor/tensor.h"
#include "holotensor/values.h"
#include "support/dtype.h"

namespace hologram::holotensor::test {

struct TestTensor {
  std::string name = "w";
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  TensorView view() const { return {name, dtype, shape, bytes}; }
  std::vector<float> values() const {
    std::vector<float> out(bytes.size() / size_of(dtype));
    EXPECT_TRUE(to_f32(dtype, bytes, out).has_value());
    return out;
  }
};

inline TestTensor from_values(DType type, std::vector<int64_t> shape,
                              const std::vector<float>& values) {
  TestTensor tensor{.dtype = type, .shape = std::move(shape)};
  tensor.bytes.resize(bytes_for(type, values.size()));
  EXPECT_TRUE(from_f32(values, type, tensor.bytes).has_value());
  return tensor;
}

// Normal weights; integers get 30 as their deviation.
inline TestTensor gaussian(DType type, std::vector<int64_t> shape, double deviation = 0.02,
                           uint64_t seed = 1) {
  size_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(type == DType::u8 ? 128 : 0,
                                          is_integer(type) ? 30 : deviation);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(normal(random));
  return from_values(type, std::move(shape), values);
}

// Every bit pattern alike: NaN payloads, infinities, denormals and negative zeros among them.
inline TestTensor random_bits(DType type, std::vector<int64_t> shape, uint64_t seed = 1) {
  size_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
  TestTensor tensor{.dtype = type, .shape = std::move(shape)};
  tensor.bytes.resize(bytes_for(type, count));
  std::mt19937_64 random(seed);
  for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(random());
  return tensor;
}

inline const std::vector<DType>& refinable_types() {
  static const std::vector<DType> types{
      DType::f32,      DType::f16,        DType::bf16,   DType::i8,         DType::u8,
      DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
  };
  return types;
}

// NMSE in extended precision, over the elements whose source is finite.
inline long double nmse(const std::vector<float>& source, const std::vector<float>& given) {
  long double error = 0, value = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!std::isfinite(source[i])) continue;
    const long double difference = static_cast<long double>(source[i]) - given[i];
    error += difference * difference;
    value += static_cast<long double>(source[i]) * source[i];
  }
  return error == 0 ? 0 : error / value;
}

inline std::vector<float> as_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace hologram::holotensor::test
