// Numbers that an archive may hold and no model means: a kernel refuses them, or does what they
// say, in time. Without the sanitizers many of these would pass by luck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/hostile/hostile_plan.h"

namespace hologram::testing {
namespace {

using kernels::Attributes;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using ::testing::HasSubstr;

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
using Integers = std::vector<int64_t>;

template <typename T>
Tensor of(const Dims& dims, const std::vector<T>& elements) {
  return *Tensor::from<T>(dims, elements);
}
Tensor zeros(const Dims& dims, DType dtype = DType::f32) {
  Tensor tensor = *Tensor::allocate(dtype, dims);
  std::fill_n(tensor.data, tensor.bytes(), std::byte{0});
  return tensor;
}

struct Call {
  std::string kernel;
  std::vector<std::optional<Tensor>> inputs;  // nothing: left out
  Attributes attributes = {};
  std::vector<Operand> outputs = {{"", DType::f32}};
};

template <typename T>
Call with(Call call, const char* name, T value) {
  call.attributes.set(name, value);
  return call;
}

Result<std::vector<Value>> run(const Call& call) {
  OneStep step{call.kernel, {}, call.outputs, {}};
  std::vector<Value> values;
  for (const auto& input : call.inputs) {
    step.inputs.push_back(input ? Operand{"", input->dtype} : Operand{"-"});
    if (input) values.emplace_back(*input);
  }
  for (const kernels::Attribute& attribute : call.attributes) step.attributes.push_back(attribute);
  HOLOGRAM_TRY(const runtime::Session session, open(step));
  return session.run(values);
}

void refused(const Call& call, const char* why) {
  const auto result = run(call);
  ASSERT_FALSE(result.has_value()) << call.kernel << ": " << why;
  EXPECT_THAT(result.error().to_string(), HasSubstr(why)) << call.kernel;
}

std::vector<float> floats(const Call& call) {
  const auto result = run(call);
  EXPECT_TRUE(result.has_value()) << call.kernel << ": " << result.error().to_string();
  if (!result) return {};
  const auto values = result->front().tensor.span<float>();
  return {values.begin(), values.end()};
}

TEST(HostileNumbers, GroupsOfConvolutions) {
  constexpr int64_t kMany = int64_t{1} << 62;
  const auto grouped = [](const char* kernel, const Dims& x, const Dims& w) {
    return with(Call{kernel, {zeros(x), zeros(w)}}, "group", kMany);
  };
  refused(grouped("Conv", {1, 8, 3}, {0, 8, 1}), "groups");
  refused(grouped("ConvTranspose", {1, 0, 3}, {0, 4, 1}), "groups");
  refused(with(Call{"ConvInteger",
                    {zeros({1, 8, 3}, DType::u8), zeros({0, 8, 1}, DType::u8)},
                    {},
                    {{"", DType::i32}}},
               "group", kMany),
          "groups");
  refused(with(Call{"DeformConv", {zeros({1, 0, 3}), zeros({4, 0, 1}), zeros({1, 1, 3})}},
               "offset_group", kMany),
          "groups");
}

TEST(HostileNumbers, WindowsFarBeyondTheirInput) {
  for (size_t rank : {1, 2, 3}) {
    const int64_t far = int64_t{1} << (rank == 1 ? 28 : 42 / rank);
    Dims dims = Dims::filled(rank + 2, 2);
    dims[0] = dims[1] = 1;
    Tensor x = zeros(dims);
    for (int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = static_cast<float>(i + 1);
    Call pool{"MaxPool", {x}};
    pool = with(pool, "kernel_shape", Integers(rank, 2 * far + 2));
    pool = with(pool, "pads", Integers(2 * rank, far));
    EXPECT_EQ(floats(pool), std::vector<float>{static_cast<float>(x.count())}) << rank;
    pool.kernel = "AveragePool";
    const float mean = static_cast<float>(x.count() + 1) / 2;
    EXPECT_EQ(floats(pool), std::vector<float>{mean}) << rank;
    pool = with(pool, "count_include_pad", int64_t{1});
    EXPECT_LT(floats(pool).at(0), 1e-6f) << rank;
    if (rank > 1)
      refused(with(pool, "kernel_shape", Integers(rank, int64_t{1} << 29)), "is too large");
    Call conv{"Conv", {x, zeros(Dims::filled(rank + 2, 3))}};
    conv.inputs[1]->dims[1] = 1;
    conv = with(conv, "dilations", Integers(rank, int64_t{1} << 30));
    conv = with(conv, "auto_pad", std::string("SAME_UPPER"));
    // There may not be memory for all the pads.
    if (const auto result = run(conv)) {
      EXPECT_EQ(result->front().tensor.count(), 3 * x.count()) << rank;
    }
  }
  refused({"Col2Im", {zeros({1, 4, 4}), of<int64_t>({2}, {kLargest, 4}), of<int64_t>({2}, {2, 2})}},
          "too large");
}

TEST(HostileNumbers, Heads) {
  constexpr int64_t kMany = int64_t{1} << 62;
  Call attention{"Attention", {zeros({1, 4, 0}), zeros({1, 4, 0}), zeros({1, 4, 8})}};
  attention = with(with(attention, "q_num_heads", kMany), "kv_num_heads", int64_t{1});
  refused(attention, "heads");
  attention = with(with(attention, "q_num_heads", int64_t{2}), "kv_num_heads", int64_t{2});
  attention.inputs = {zeros({1, 2, 4}), zeros({1, 2, 4}), zeros({1, 2, 4})};
  attention = with(with(attention, "left_window_size", kLargest), "right_window_size", kLargest);
  EXPECT_EQ(floats(attention).size(), 8u);
  attention.inputs.resize(7);
  attention.inputs[6] = of<int64_t>({1}, {kSmallest});
  refused(attention, "nonpad_kv_seqlen");
  EXPECT_EQ(
      floats(with(Call{"RotaryEmbedding", {zeros({2, 4, 0}), zeros({2, 4, 0}), zeros({2, 4, 0})}},
                  "num_heads", kMany))
          .size(),
      0u);
}

TEST(HostileNumbers, StridesOfFusedAttention) {
  Call call{"hologram.Attention", {zeros({1, 2, 8}), zeros({1, 2, 8}), zeros({1, 2, 8})}};
  for (const char* name : {"heads", "kv_heads"}) call = with(call, name, int64_t{2});
  for (const char* name : {"depth", "value_depth"}) call = with(call, name, int64_t{4});
  for (const char* name : {"q", "k", "v"}) call = with(call, name, Integers{0, -1, 4, 8});
  call = with(call, "rows_first", int64_t{1});
  EXPECT_EQ(floats(call).size(), 16u);
  refused(with(call, "k", Integers{0, -1, kLargest, 8}), "'k' reaches beyond");
  refused(with(call, "k", Integers{kLargest, -1, 4, 8}), "'k' reaches beyond");
  refused(with(with(call, "k", Integers{0, -1, 0, 0}), "keys", int64_t{1} << 40),
          "'k' reaches beyond");
  refused(with(with(call, "heads", int64_t{1} << 62), "value_depth", int64_t{1} << 62),
          "too large");
  const Call shorts = with(with(call, "digits", int64_t{1}), "digit_bits", int64_t{16});
  EXPECT_EQ(floats(shorts).size(), 16u);
  for (int64_t bits : {int64_t{8}, int64_t{0}, kLargest})
    refused(with(shorts, "digit_bits", bits), "attention of");
  for (int64_t digits : {int64_t{0}, int64_t{2}, int64_t{-1}, kLargest})
    refused(with(shorts, "digits", digits), "attention of");
  refused(with(shorts, "parts", int64_t{1}), "attention of");
  refused(with(shorts, "ordered", int64_t{1}), "attention of");
  refused({"hologram.ToBlocked", {zeros(Dims::filled(16, 1))}}, "too many");
}

TEST(HostileNumbers, DigitsOfConvolutions) {
  // 3 x 3 over 16 channels: three steps of 64 terms, two digits each, and 32 scales.
  constexpr int64_t kBytes = 3 * 2 * 64 * 16 + 32 * 4;
  Call call{"hologram.Conv", {zeros({1, 1, 5, 6, 16}), zeros({kBytes}, DType::u8)}};
  call = with(call, "weight_shape", Integers{16, 16, 3, 3});
  call = with(call, "pads", Integers{1, 1, 1, 1});
  for (const char* name : {"blocked_input", "blocked_output", "packed"})
    call = with(call, name, int64_t{1});
  call = with(call, "digits", int64_t{2});
  EXPECT_EQ(floats(call), std::vector<float>(5 * 6 * 16, 0.0f));

  for (int64_t digits : {int64_t{3}, int64_t{-2}, kLargest})
    refused(with(call, "digits", digits), "no such convolution of");
  refused(with(call, "digits", int64_t{1}), "bytes of packed weights");
  refused(with(call, "parts", int64_t{2}), "no such convolution of");
  refused(with(call, "packed", int64_t{0}), "no such convolution of");
  refused(with(call, "blocked_output", int64_t{0}), "no such convolution of");
  refused(with(call, "algorithm", int64_t{1}), "no such convolution of");
  for (int64_t bytes : {kBytes - 1, kBytes + 1, int64_t{16 * 16 * 9}}) {
    Call other = call;
    other.inputs[1] = zeros({bytes}, DType::u8);
    refused(other, "bytes of packed weights");
  }
  refused(with(call, "weight_shape", Integers{16, 16, 1, 3}), "bytes of packed weights");
  refused(with(call, "dilations", Integers{1, 2}), "bytes of packed weights");
  refused(with(call, "pads", Integers{kLargest, 0, kLargest, 0}), "");
  Call narrow = call;
  narrow.inputs[0] = zeros({1, 1, 5, 6, 16}, DType::bf16);
  refused(narrow, "no such convolution of");
  narrow = with(call, "output", int64_t{static_cast<uint8_t>(DType::bf16)});
  narrow.outputs[0].dtype = DType::bf16;
  refused(narrow, "no such convolution of");
  narrow = call;
  narrow.inputs.resize(3);
  narrow.inputs.push_back(zeros({1, 1, 5, 6, 16}, DType::bf16));
  refused(narrow, "no such convolution of");
  // More terms than 32 bits hold.
  Call longest = call;
  longest.inputs = {zeros({1, 4097, 1, 1, 16}), zeros({4097 * 16 * 16 * 2 + 128}, DType::u8)};
  longest = with(with(longest, "weight_shape", Integers{16, 4097 * 16, 1, 1}), "pads",
                 Integers{0, 0, 0, 0});
  refused(longest, "no such convolution of");
}

TEST(HostileNumbers, ShortsOfConvolutions) {
  // 3 x 3 over 16 channels: a row of the kernel is two steps of 32 terms; 32 scales.
  constexpr int64_t kBytes = 3 * 2 * 64 * 16 + 32 * 4;
  Call call{"hologram.Conv", {zeros({1, 1, 5, 6, 16}), zeros({kBytes}, DType::u8)}};
  call = with(call, "weight_shape", Integers{16, 16, 3, 3});
  call = with(call, "pads", Integers{1, 1, 1, 1});
  for (const char* name : {"blocked_input", "blocked_output", "packed", "digits"})
    call = with(call, name, int64_t{1});
  call = with(call, "digit_bits", int64_t{16});
  EXPECT_EQ(floats(call), std::vector<float>(5 * 6 * 16, 0.0f));

  for (int64_t bits : {int64_t{8}, int64_t{-16}, int64_t{17}, kLargest})
    refused(with(call, "digit_bits", bits), "no such convolution of");
  refused(with(call, "digits", int64_t{2}), "no such convolution of");
  refused(with(call, "parts", int64_t{1}), "no such convolution of");
  refused(with(call, "packed", int64_t{0}), "no such convolution of");
  refused(with(call, "blocked_output", int64_t{0}), "no such convolution of");
  refused(with(call, "algorithm", int64_t{1}), "no such convolution of");
  for (int64_t bytes : {kBytes - 1, kBytes + 1, int64_t{16 * 16 * 9}}) {
    Call other = call;
    other.inputs[1] = zeros({bytes}, DType::u8);
    refused(other, "bytes of packed weights");
  }
  refused(with(call, "weight_shape", Integers{16, 16, 1, 3}), "bytes of packed weights");
  refused(with(call, "pads", Integers{kLargest, 0, kLargest, 0}), "");
  Call narrow = call;
  narrow.inputs[0] = zeros({1, 1, 5, 6, 16}, DType::bf16);
  refused(narrow, "no such convolution of");
  // Any bits are integers: sums that a scale would have kept within theirs wrap around.
  Call wrapped = call;
  for (int64_t i = 0; i < kBytes; ++i) wrapped.inputs[1]->data[i] = std::byte{0x7f};
  for (int64_t i = 0; i < 5 * 6 * 16; ++i) wrapped.inputs[0]->as<float>()[i] = 1;
  EXPECT_EQ(floats(wrapped).size(), 5u * 6 * 16);
}

TEST(HostileNumbers, ShortsOfProducts) {
  constexpr int64_t kBytes = 2 * 64 * 16 + 32 * 4;  // 64 terms, 16 columns
  Call call{"hologram.MatMul", {zeros({3, 40}), zeros({kBytes}, DType::u8)}};
  for (const auto& [name, value] :
       {std::pair{"k", 40}, {"n", 16}, {"packed", 1}, {"digits", 1}, {"digit_bits", 16}})
    call = with(call, name, int64_t{value});
  EXPECT_EQ(floats(call), std::vector<float>(3 * 16, 0.0f));
  for (int64_t bits : {int64_t{8}, int64_t{0}, int64_t{-16}, int64_t{32}, kLargest})
    refused(with(call, "digit_bits", bits), "no product of");
  for (int64_t digits : {int64_t{0}, int64_t{2}, int64_t{-1}, kLargest})
    refused(with(call, "digits", digits), "no product of");
  refused(with(call, "packed", int64_t{0}), "");
  for (int64_t bytes : {kBytes - 1, kBytes + 1, int64_t{40 * 16 * 4}}) {
    Call other = call;
    other.inputs[1] = zeros({bytes}, DType::u8);
    refused(other, "a matrix of");
  }
  refused(with(call, "n", int64_t{17}), "a matrix of");
}

TEST(HostileNumbers, BytesOfConvolutions) {
  // 3 x 3 over 16 channels: three steps of 64 terms, 32 scales and 32 sums.
  constexpr int64_t kBytes = 3 * 64 * 16 + 2 * 32 * 4;
  Call call{"hologram.Conv", {zeros({1, 1, 5, 6, 16}), zeros({kBytes}, DType::u8)}};
  call = with(call, "weight_shape", Integers{16, 16, 3, 3});
  call = with(call, "pads", Integers{1, 1, 1, 1});
  for (const char* name : {"blocked_input", "blocked_output", "packed", "digits"})
    call = with(call, name, int64_t{1});
  EXPECT_EQ(floats(call), std::vector<float>(5 * 6 * 16, 0.0f));

  refused(with(call, "parts", int64_t{1}), "no such convolution of");
  refused(with(call, "packed", int64_t{0}), "no such convolution of");
  refused(with(call, "blocked_input", int64_t{0}), "");
  refused(with(call, "blocked_output", int64_t{0}), "no such convolution of");
  refused(with(call, "algorithm", int64_t{1}), "no such convolution of");
  for (int64_t bytes : {kBytes - 1, kBytes + 1, int64_t{16 * 16 * 9}}) {
    Call other = call;
    other.inputs[1] = zeros({bytes}, DType::u8);
    refused(other, "bytes of packed weights");
  }
  refused(with(call, "weight_shape", Integers{16, 16, 1, 3}), "bytes of packed weights");
  refused(with(call, "dilations", Integers{1, 2}), "bytes of packed weights");
  refused(with(call, "pads", Integers{kLargest, 0, kLargest, 0}), "");
  // Scales, sums and weights that nobody packed: whatever comes out, nothing breaks.
  Call wild = call;
  for (size_t i = 0; i < size_t{kBytes}; ++i)
    wild.inputs[1]->data[i] = static_cast<std::byte>(i * 37 + 0x7f);
  EXPECT_EQ(floats(wild).size(), 5u * 6 * 16);
  // More terms than 32 bits hold.
  Call longest = call;
  longest.inputs = {zeros({1, 4097, 1, 1, 16}), zeros({4097 * 16 * 16 + 256}, DType::u8)};
  longest = with(with(longest, "weight_shape", Integers{16, 4097 * 16, 1, 1}), "pads",
                 Integers{0, 0, 0, 0});
  refused(longest, "no such convolution of");
}

TEST(HostileNumbers, Gates) {
  // 20 channels in two blocks, 5 between: both matrices in one panel.
  Call call{"hologram.Gate", {zeros({2, 2, 3, 3, 16}), zeros({20 * 16}), zeros({5 * 32})}};
  call = with(with(call, "channels", int64_t{20}), "hidden", int64_t{5});
  EXPECT_EQ(floats(call), std::vector<float>(2 * 2 * 9 * 16, 0.0f));

  for (int64_t channels : {int64_t{0}, int64_t{-20}, int64_t{16}, int64_t{33}, kLargest, kSmallest})
    refused(with(call, "channels", channels), "a gate of");
  for (int64_t hidden : {int64_t{0}, int64_t{-5}, kLargest, kSmallest})
    refused(with(call, "hidden", hidden), "a gate of");
  for (int64_t hidden : {int64_t{6}, int64_t{17}, int64_t{1} << 28})
    refused(with(call, "hidden", hidden), "bytes of packed weights");
  refused(with(call, "channels", int64_t{21}), "bytes of packed weights");
  for (const char* name : {"squeeze_activation", "excite_activation"}) {
    refused(with(call, name, std::string("Gelu")), "Gelu in a gate");
    refused(with(call, name, std::string("none of them")), "");
  }
  Call flat = call;
  flat.inputs[0] = zeros({2, 2, 16});
  refused(flat, "a gate of");
  Call biased = call;
  biased.inputs.resize(5);
  biased.inputs[3] = zeros({10});
  biased.inputs[4] = zeros({20});
  EXPECT_EQ(floats(biased).size(), 2u * 2 * 9 * 16);
  for (size_t i : {size_t{3}, size_t{4}})
    for (int64_t count : {int64_t{0}, int64_t{4}, int64_t{21}, int64_t{41}}) {
      Call other = biased;
      other.inputs[i] = zeros({count});
      refused(other, "bias");
    }
  Call empty = call;
  empty.inputs[0] = zeros({0, 2, 3, 3, 16});
  EXPECT_EQ(floats(empty).size(), 0u);
  empty.inputs[0] = zeros({2, 2, 0, 3, 16});
  EXPECT_EQ(floats(empty).size(), 0u);
}

TEST(HostileNumbers, BitsOfProducts) {
  // 300 rows in groups of 128 by 40 columns, two panels: 32 scales a group, then pairs of weights.
  constexpr int64_t kBytes = 2 * (3 * 32 * 4 + 300 * 32 * 2);
  Call call{"hologram.MatMul", {zeros({1, 300}), zeros({kBytes}, DType::u8)}};
  call = with(with(call, "k", int64_t{300}), "n", int64_t{40});
  call = with(with(call, "bits", int64_t{16}), "group", int64_t{128});
  call = with(call, "packed", int64_t{1});
  EXPECT_EQ(floats(call), std::vector<float>(40, 0.0f));

  for (int64_t bits : {int64_t{1}, int64_t{2}, int64_t{-16}, int64_t{15}, int64_t{32}, kLargest})
    refused(with(call, "bits", bits), "weights of");
  refused(with(call, "bits", int64_t{8}), "a matrix of");
  refused(with(call, "packed", int64_t{0}), "weights of");
  refused(with(call, "zeros", int64_t{1}), "weights of");
  refused(with(call, "group", int64_t{-128}), "weights of");
  for (int64_t group : {int64_t{0}, int64_t{1}, int64_t{127}, int64_t{300}, kLargest})
    refused(with(call, "group", group), "a matrix of");
  for (int64_t bytes : {kBytes - 1, kBytes + 1, int64_t{300 * 40 * 2}}) {
    Call other = call;
    other.inputs[1] = zeros({bytes}, DType::u8);
    refused(other, "a matrix of");
  }
  refused(with(call, "k", int64_t{100}), "");
  refused(with(call, "k", kLargest), "");
  refused(with(call, "n", int64_t{65}), "a matrix of");
  refused(with(call, "n", kLargest), "");
  refused(with(call, "dynamic", int64_t{1}), "8-bit weights");
}

TEST(HostileNumbers, MatricesOfRecurrentLayers) {
  // 20 inputs and 8 states, 32 gates: one panel. The states as 16-bit integers.
  constexpr int64_t kBytes = 32 * 4 + 8 * 32 * 2;
  Call call{"hologram.LSTM", {zeros({3, 1, 20}), zeros({20 * 32}), zeros({kBytes}, DType::u8)}};
  call = with(with(call, "input_size", int64_t{20}), "hidden_size", int64_t{8});
  EXPECT_EQ(floats(call), std::vector<float>(3 * 8, 0.0f));
  Call narrow = call;
  narrow.inputs[1] = zeros({32 * 4 + 20 * 32 * 2}, DType::u8);
  EXPECT_EQ(floats(narrow), std::vector<float>(3 * 8, 0.0f));

  for (int64_t bytes : {int64_t{0}, kBytes - 1, kBytes + 1, int64_t{8 * 32 * 4}}) {
    Call other = call;
    other.inputs[2] = zeros({bytes}, DType::u8);
    refused(other, "packed R is");
    other = call;
    other.inputs[1] = zeros({bytes}, DType::u8);
    refused(other, "packed W is");
  }
  for (DType dtype : {DType::bf16, DType::f16, DType::i8}) {
    Call other = call;
    other.inputs[2] = zeros({8 * 32 * 4 / static_cast<int64_t>(size_of(dtype))}, dtype);
    refused(other, "");
  }
  refused(with(call, "direction", std::string("bidirectional")), "packed W is");
  refused(with(call, "hidden_size", int64_t{9}), "packed W is");
  refused(with(call, "hidden_size", kLargest), "");
}

TEST(HostileNumbers, ConvolutionsOfPointsBeforeADepthwiseOne) {
  Call call{"hologram.Conv",
            {zeros({1, 1, 5, 6, 16}), zeros({2 * 9 * 16}), zeros({32}), std::nullopt,
             zeros({16 * 32}), zeros({32})}};
  call = with(with(call, "weight_shape", Integers{32, 1, 3, 3}), "group", int64_t{32});
  call = with(call, "pads", Integers{1, 1, 1, 1});
  for (const char* name : {"blocked_input", "blocked_output", "packed"})
    call = with(call, name, int64_t{1});
  call = with(call, "points_shape", Integers{32, 16, 1, 1});
  EXPECT_EQ(floats(call), std::vector<float>(2 * 5 * 6 * 16, 0.0f));

  for (const Integers& shape :
       {Integers{32, 16}, Integers{32, 16, 1, 3}, Integers{32, 16, 3, 1}, Integers{16, 16, 1, 1},
        Integers{32, 17, 1, 1}, Integers{32, 0, 1, 1}, Integers{32, -16, 1, 1},
        Integers{32, kLargest, 1, 1}, Integers{kLargest, kLargest, 1, 1}, Integers{1}})
    refused(with(call, "points_shape", shape), "before 32 channels");
  refused(with(call, "points_shape", Integers{32, 15, 1, 1}), "bytes of packed weights");
  refused(with(call, "blocked_input", int64_t{0}), "");
  refused(with(call, "blocked_output", int64_t{0}), "no such convolution of points");
  for (int64_t parts : {int64_t{-1}, int64_t{3}, kLargest})
    refused(with(call, "points_parts", parts), "no such convolution of points");
  refused(with(call, "points_parts", int64_t{2}), "bytes of packed weights");
  for (int64_t output : {int64_t{1}, int64_t{-1}, static_cast<int64_t>(DType::bf16), kLargest})
    refused(with(call, "points_output", output), "no such convolution of points");
  refused(with(call, "points_activation", std::string("Nothing")), "");
  for (const char* name : {"parts", "digits", "mirrored"})
    refused(with(call, name, int64_t{1}), "behind one of points");
  refused(with(call, "packed", int64_t{0}), "behind one of points");
  refused(with(call, "algorithm", int64_t{1}), "");
  refused(with(call, "group", int64_t{1}), "");
  refused(with(call, "pads", Integers{kLargest, 0, kLargest, 0}), "");
  for (const size_t input : {size_t{1}, size_t{4}}) {
    Call other = call;
    other.inputs[input] = zeros({16});
    refused(other, "");
  }
  Call other = call;
  other.inputs[5] = zeros({31});
  refused(other, "bias");
  other = call;
  other.inputs.resize(4);
  refused(other, "before 32 channels");
  other = call;
  other.inputs[3] = zeros({1, 2, 5, 6, 16});
  refused(other, "no such convolution of points");
  other = call;
  other.inputs[0] = zeros({1, 1, 5, 6, 16}, DType::bf16);
  refused(other, "");
}

TEST(HostileNumbers, FourierTransforms) {
  Call call{"hologram.Fourier", {zeros({2, 1, 100}), zeros({3 * 32})}};
  call = with(with(call, "weight_shape", Integers{34, 1, 32}), "strides", Integers{10});
  call = with(call, "waves", int64_t{2});
  EXPECT_EQ(floats(call), std::vector<float>(2 * 34 * 7, 0.0f));
  for (const int64_t waves : {int64_t{-1}, int64_t{3}, kLargest})
    refused(with(call, "waves", waves), "no such Fourier transform");
  for (const int64_t stride : {int64_t{0}, int64_t{-1}, kSmallest, kLargest})
    refused(with(call, "strides", Integers{stride}), "no such Fourier transform");
  refused(with(call, "strides", Integers{1, 1}), "no such Fourier transform");
  for (const Integers& shape :
       {Integers{34, 32}, Integers{34, 1, 0}, Integers{34, 1, -32}, Integers{34, 1, 8},
        Integers{34, 1, 33}, Integers{34, 1, 2048}, Integers{34, 1, kLargest}, Integers{}})
    refused(with(call, "weight_shape", shape), "no such Fourier transform");
  for (const Integers& shape : {Integers{33, 1, 32}, Integers{34, 2, 32}, Integers{18, 1, 16},
                                Integers{130, 1, 128}, Integers{kLargest, 1, 32}})
    refused(with(call, "weight_shape", shape), "of a transform of");
  refused(with(call, "waves", int64_t{0}), "of a transform of");
  for (const Dims& dims : {Dims{2, 100}, Dims{2, 2, 100}, Dims{2, 1, 31}, Dims{2, 1, 0}, Dims{}}) {
    Call other = call;
    other.inputs[0] = zeros(dims);
    refused(other, "of a transform of");
  }
  Call other = call;
  other.inputs[1] = zeros({3 * 32 - 1});
  refused(other, "of a transform of");
  other = call;
  other.inputs[0] = zeros({0, 1, 100});
  EXPECT_TRUE(run(other).has_value());
  // Sines apart: filters of either, which have to be both.
  other = call;
  other.outputs.push_back({"", DType::f32});
  refused(other, "of a transform of");
  other = with(other, "weight_shape", Integers{17, 1, 32});
  EXPECT_EQ(floats(other), std::vector<float>(2 * 17 * 7, 0.0f));
  refused(with(other, "waves", int64_t{1}), "with sines apart");
}

TEST(HostileNumbers, RepeatsAndBlocks) {
  constexpr int64_t kMany = int64_t{1} << 40;
  refused({"Tile", {zeros({1, 1}), of<int64_t>({2}, {kMany, kMany})}}, "too large");
  refused(with(Call{"SpaceToDepth", {zeros({1, 1 << 25, 0, 0})}}, "blocksize", int64_t{1} << 20),
          "too large");
  const Call quantize{"QuantizeLinear",
                      {zeros({2, 4}), of<float>({2, 1}, {1, 1}), zeros({2, 1}, DType::u8)},
                      {},
                      {{"", DType::u8}}};
  EXPECT_TRUE(run(with(quantize, "block_size", kLargest)).has_value());
  refused({"SplitToSequence", {zeros({1 << 21}, DType::u8)}, {}, {{"seq", DType::u8}}},
          "a sequence of 2097152 parts");
  Call bits{"MatMulNBits", {zeros({2, 0}), zeros({4, 0, 8}, DType::u8), zeros({4, 0})}};
  bits = with(with(with(bits, "K", int64_t{0}), "N", int64_t{4}), "block_size", int64_t{16});
  refused(bits, "K = 0");
}

TEST(HostileNumbers, WhatIsNoNumberAsAnInteger) {
  const Tensor a = of<int32_t>({1, 1}, {3});
  for (const double factor : {std::nan(""), 1e300, -1e300})
    EXPECT_TRUE(run(with(with(Call{"Gemm", {a, a, a}, {}, {{"", DType::i32}}}, "alpha", factor),
                         "beta", factor))
                    .has_value());
  const auto logarithm = run({"ReduceLogSum", {zeros({3}, DType::i32)}, {}, {{"", DType::i32}}});
  ASSERT_TRUE(logarithm.has_value());
  EXPECT_EQ(*logarithm->front().tensor.as<int32_t>(), std::numeric_limits<int32_t>::min());
  EXPECT_TRUE(
      run({"ReduceL2", {of<int32_t>({2}, {40000, 30000})}, {}, {{"", DType::i32}}}).has_value());
  const Tensor wild = of<float>({3}, {NAN, INFINITY, 1});
  EXPECT_EQ(floats(with(Call{"OneHotEncoder", {wild}}, "cats_int64s", Integers{1, kSmallest})),
            (std::vector<float>{0, 0, 0, 0, 1, 0}));
  EXPECT_TRUE(run({"DynamicQuantizeLinear",
                   {wild},
                   {},
                   {{"", DType::u8}, {"", DType::f32}, {"", DType::u8}}})
                  .has_value());
  Call roi{"RoiAlign", {zeros({1, 1, 4, 4}), zeros({1, 4}), of<int64_t>({1}, {0})}};
  refused(with(roi, "spatial_scale", 1e300), "spatial_scale");
  refused({"BitCast", {of<uint8_t>({2}, {1, 2})}, {}, {{"", DType::boolean}}}, "no bool");
}

TEST(HostileNumbers, Resizing) {
  Call keep{"Resize", {zeros({0, 2}), std::nullopt, std::nullopt, of<int64_t>({2}, {0, 2})}};
  refused(with(keep, "keep_aspect_ratio_policy", std::string("not_smaller")), "for an axis of 0");
  Call crop{"Resize",
            {zeros({4}), of<float>({2}, {0, 1e30f}), of<float>({1}, {1e-30f})},
            {},
            {{"", DType::f32}}};
  crop = with(with(crop, "antialias", int64_t{1}), "mode", std::string("cubic"));
  crop = with(crop, "coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  (void)run(crop);  // ends
}

TEST(HostileNumbers, TablesOfModels) {
  refused(with(Call{"LinearRegressor", {zeros({2, 3})}}, "targets", kLargest), "targets");
  refused(with(Call{"LinearRegressor", {zeros({0, 0})}}, "targets", int64_t{1} << 28), "targets");
  refused(with(Call{"TreeEnsembleRegressor", {zeros({1, 1})}}, "n_targets", int64_t{1} << 26),
          "n_targets");
  Call grams{"TfIdfVectorizer", {of<int64_t>({4}, {1, 2, 1, 2})}};
  for (const char* name : {"min_gram_length", "max_gram_length"})
    grams = with(grams, name, int64_t{2});
  grams = with(grams, "mode", std::string("TF"));
  grams = with(grams, "max_skip_count", kLargest);
  grams = with(grams, "ngram_counts", Integers{0, 0});
  grams = with(grams, "pool_int64s", Integers{1, 2});
  EXPECT_EQ(floats(with(grams, "ngram_indexes", Integers{0})), std::vector<float>{3});
  refused(with(grams, "ngram_indexes", Integers{kLargest}), "ngram_indexes");
  refused(with(Call{"ConstantOfShape", {of<int64_t>({1}, {2})}, {}, {{"", DType::string}}}, "value",
               zeros({1}, DType::i64)),
          "value of type i64");
}

// A sort needs an order of all elements: with one that has none it reads outside of them.
TEST(HostileNumbers, UniqueAmongWhatIsNoNumber) {
  std::vector<float> many(500);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = i % 3 == 0 ? NAN : static_cast<float>((i * 7919) % 11);
  const auto distinct = floats({"Unique", {of<float>({500}, many)}});
  ASSERT_EQ(distinct.size(), 12u);
  EXPECT_TRUE(std::is_sorted(distinct.begin(), distinct.end() - 1));
  EXPECT_TRUE(std::isnan(distinct.back()));
}

// Rows that are not there are not walked for ever, and lists of them not made.
TEST(HostileNumbers, LongAxesWithoutElements) {
  constexpr int64_t kLong = 1 << 26;
  EXPECT_EQ(floats({"MatMul", {zeros({kLong, 0, 2}), zeros({2, 3})}}).size(), 0u);
  refused({"Unique", {zeros({0, kLong})}, {}, {{"", DType::f32}, {"", DType::string}}}, "output 1");
  refused({"InstanceNormalization", {zeros({0, kLong, 1}), zeros({2}), zeros({2})}}, "values");
  Value large(zeros({0}));
  large.tensor.dims = {0, int64_t{1} << 40};
  const OneStep step{"Identity", {{"", DType::f32}}, {{"", DType::f32}}, {}};
  const auto session = open(step);
  ASSERT_TRUE(session.has_value());
  EXPECT_THAT(session->run(std::vector{large}).error().to_string(), HasSubstr("too large"));
}

}  // namespace
}  // namespace hologram::testing
