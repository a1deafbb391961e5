// Bad input: an error or a lower quality; never a crash, a hang or a silently wrong tensor.
#include <gtest/gtest.h>

#include "holotensor/fault_tolerant_decoder.h"
#include "holotensor/reader.h"
#include "holotensor/test_tensors.h"
#include "holotensor/writer.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

using test::TestTensor;

std::vector<TestTensor> small_tensors() {
  std::vector<TestTensor> tensors{
      test::gaussian(DType::bf16, {40, 50}), test::gaussian(DType::f32, {5, 40}, 0.02, 2),
      test::gaussian(DType::i8, {200}), test::random_bits(DType::i64, {3})};
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].name = "tensor" + std::to_string(i);
  return tensors;
}

std::vector<EncodedTensor> encode_all() {
  std::vector<EncodedTensor> encoded;
  for (const TestTensor& tensor : small_tensors()) {
    EncoderOptions options;
    if (tensor.dtype == DType::f32) {
      options.distribution = Distribution::any;
      options.fragments = 4;
      options.min_fragments = 2;
    }
    encoded.push_back(*Encoder(options).encode(tensor.view()));
  }
  EXPECT_EQ(encoded[0].info.scheme, SchemeId::refine);
  EXPECT_EQ(encoded[1].info.scheme, SchemeId::refine);
  EXPECT_EQ(encoded[3].info.scheme, SchemeId::packed);
  return encoded;
}

// Everything a reader can do with these bytes. Whatever decodes must be what the same number of
// good fragments give.
void read_all(const std::vector<std::byte>& bytes, const std::vector<EncodedTensor>& clean) {
  const auto reader = Reader::from_memory(SharedBytes::borrowed(bytes));
  if (!reader) return;
  const auto sources = small_tensors();
  ASSERT_EQ(reader->tensors().size(), sources.size());
  for (size_t t = 0; t < sources.size(); ++t) {
    const TensorInfo& info = reader->tensors()[t];
    auto decoder = FaultTolerantDecoder::create(info);
    ASSERT_TRUE(decoder) << decoder.error().to_string();
    ASSERT_TRUE(decoder->fetch_all([&](uint16_t i) { return reader->read_fragment(info, i); }));
    const auto given = decoder->reconstruct(info.dtype);
    if (!given) continue;
    if (decoder->quality().exact) {
      EXPECT_EQ(*given, sources[t].bytes);
      continue;
    }
    auto expected = *Decoder::create(clean[t].info);
    for (uint16_t i = 0; i < info.fragment_count; ++i)
      if (decoder->decoder().has(i)) {
        ASSERT_TRUE(expected.add_fragment(SharedBytes::borrowed(clean[t].fragments[i])));
      }
    EXPECT_EQ(*given, *expected.reconstruct());
    EXPECT_EQ(decoder->quality(), expected.quality());
  }
}

TEST(BadInput, EveryByteFlippedInTurn) {
  const auto clean = encode_all();
  auto bytes = *write_to_memory(clean);
  read_all(bytes, clean);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const std::byte mask : {std::byte{0xff}, static_cast<std::byte>(1 << i % 8)}) {
      bytes[i] ^= mask;
      read_all(bytes, clean);
      bytes[i] ^= mask;
      if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "at byte " << i;
    }
  }
}

TEST(BadInput, CutOffAtEveryLength) {
  const auto clean = encode_all();
  const auto bytes = *write_to_memory(clean);
  for (size_t size = 0; size < bytes.size(); ++size) {
    read_all({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)}, clean);
    if (HasFailure()) FAIL() << "at length " << size;
  }
}

// The front of a file (header and directory) with right checksums, whatever the infos say.
std::vector<std::byte> forged_file(const std::vector<TensorInfo>& infos) {
  const auto directory = write_directory(infos);
  FileHeader header{.file_size = 1 << 20,
                    .directory_stored = directory.size(),
                    .directory_raw = directory.size(),
                    .tensor_count = static_cast<uint32_t>(infos.size()),
                    .directory_codec = Codec::none,
                    .directory_hash = hash64(directory)};
  auto bytes = write_header(header);
  bytes.insert(bytes.end(), directory.begin(), directory.end());
  bytes.resize(1 << 20);
  return bytes;
}

TensorInfo placed_info() {
  TensorInfo info = encode_all()[0].info;
  for (FragmentEntry& entry : info.fragments) entry.offset = 1000;
  return info;
}

TEST(BadInput, DirectoriesThatLieAreRefused) {
  ASSERT_TRUE(Reader::from_memory(SharedBytes::owned(forged_file({placed_info()}))));
  const auto refused = [](auto&& change) {
    TensorInfo info = placed_info();
    change(info);
    const auto reader = Reader::from_memory(SharedBytes::owned(forged_file({info})));
    EXPECT_FALSE(reader);
    if (!reader) {
      EXPECT_TRUE(is_user_error(reader.error().code())) << reader.error().to_string();
    }
  };
  refused([](TensorInfo& i) { i.shape = {-1, 5}; });
  refused([](TensorInfo& i) { i.shape.assign(300, 1); });
  refused([](TensorInfo& i) { i.shape = {INT64_MAX, INT64_MAX, 4}; });
  refused([](TensorInfo& i) { i.shape = {int64_t{1} << 50}; });  // more than its fragments can hold
  refused([](TensorInfo& i) { i.dtype = static_cast<DType>(200); });
  refused([](TensorInfo& i) { i.dtype = DType::string; });
  refused([](TensorInfo& i) { i.distribution = static_cast<Distribution>(7); });
  refused([](TensorInfo& i) { i.fragment_count = 0; });
  refused([](TensorInfo& i) { i.fragment_count = 60000; });
  refused([](TensorInfo& i) { i.min_fragments = 0; });
  refused([](TensorInfo& i) { i.min_fragments = i.fragment_count + 1; });
  refused([](TensorInfo& i) { i.curve[1].nmse = NAN; });
  refused([](TensorInfo& i) { i.curve[1].max_error = -1; });
  refused([](TensorInfo& i) { i.fragments[0].offset = UINT64_MAX - 5; });
  refused([](TensorInfo& i) { i.fragments[0].offset = 1 << 20; });
  refused([](TensorInfo& i) { i.fragments[0].size = UINT64_MAX; });
  refused([](TensorInfo& i) { i.fragments[0].size = 3; });
  EXPECT_FALSE(
      Reader::from_memory(SharedBytes::owned(forged_file({placed_info(), placed_info()}))));
}

TEST(BadInput, ParametersThatLieAreRefused) {
  for (const size_t tensor : {0u, 1u}) {
    const EncodedTensor clean = encode_all()[tensor];
    for (size_t at = 0; at < clean.info.parameters.size(); ++at) {
      for (const int value : {0, 1, 127, 255}) {
        EncodedTensor forged = clean;
        forged.info.parameters[at] = static_cast<std::byte>(value);
        forged.info.id = identity_of(forged.info);
        auto decoder = Decoder::create(forged.info);
        if (!decoder) continue;
        for (uint16_t i = 0; i < clean.info.fragment_count; ++i) {
          const auto fragment = *parse_fragment(SharedBytes::borrowed(clean.fragments[i]));
          const auto payload = *payload_of(fragment, 1 << 20);
          (void)decoder->add_fragment(SharedBytes::owned(
              make_fragment(forged.info, i, {payload.view.begin(), payload.view.end()})));
        }
        const auto given = decoder->reconstruct();
        if (given && decoder->quality().exact) {
          EXPECT_EQ(*given, small_tensors()[tensor].bytes);
        }
      }
    }
    TensorInfo shorter = clean.info;
    while (!shorter.parameters.empty()) {
      shorter.parameters.pop_back();
      EXPECT_FALSE(Decoder::create(shorter)) << shorter.parameters.size();
    }
  }
}

// Payloads whose checksums are right but whose contents are not.
TEST(BadInput, PayloadsThatLieNeverGiveAWrongTensor) {
  for (const EncodedTensor& clean : encode_all()) {
    for (uint16_t f = 0; f < clean.info.fragment_count; ++f) {
      const auto fragment = *parse_fragment(SharedBytes::borrowed(clean.fragments[f]));
      const auto payload = *payload_of(fragment, 1 << 20);
      std::vector<std::byte> bytes(payload.view.begin(), payload.view.end());
      for (size_t at = 0; at < bytes.size(); ++at) {
        for (const std::byte mask : {std::byte{0xff}, std::byte{1}, std::byte{0x80}}) {
          bytes[at] ^= mask;
          auto decoder = *Decoder::create(clean.info);
          for (uint16_t i = 0; i < clean.info.fragment_count; ++i)
            (void)decoder.add_fragment(i == f
                                           ? SharedBytes::owned(make_fragment(clean.info, i, bytes))
                                           : SharedBytes::borrowed(clean.fragments[i]));
          const auto given = decoder.reconstruct();
          if (given && decoder.quality().exact) {
            EXPECT_EQ(hash64(*given), clean.info.content_hash);
          }
          bytes[at] ^= mask;
        }
      }
    }
  }
}

TEST(BadInput, CompressedBytesThatLieAreRefused) {
  const std::vector<std::byte> raw(100000, std::byte{3});
  Compressed packed = compress(raw);
  ASSERT_EQ(packed.codec, Codec::zstd);
  EXPECT_EQ(*decompress(packed.codec, packed.bytes, raw.size()), raw);
  EXPECT_FALSE(decompress(packed.codec, packed.bytes, raw.size() - 1));
  EXPECT_FALSE(decompress(static_cast<Codec>(9), packed.bytes, raw.size()));
  EXPECT_FALSE(decompress(Codec::lz4, packed.bytes, raw.size()));
  packed.bytes[6] = std::byte{0x7f};  // now 2^54 bytes and more
  EXPECT_FALSE(decompress(packed.codec, packed.bytes, UINT64_MAX));
  for (size_t size = 0; size < packed.bytes.size(); ++size)
    EXPECT_FALSE(decompress(packed.codec, std::span(packed.bytes).first(size), raw.size()));
}

}  // namespace
}  // namespace hologram::holotensor
