// Everything that reads bytes from outside. The first byte chooses what the others are:
//   0 a file; 1 a directory (its checksum is made right); 2 a payload of a refined tensor
//   (likewise); 3 changes to a good payload: (u16 place, u8 xor) each; 4 an HTNS file.
#include <cstdlib>
#include <cstring>

#include "holotensor/byte_io.h"
#include "holotensor/encoder.h"
#include "holotensor/htns.h"
#include "holotensor/reader.h"
#include "support/hash.h"

using namespace hologram;
using namespace hologram::holotensor;

namespace {

ThreadPool pool(1);

void decode_all(const Reader& reader) {
  for (const TensorInfo& info : reader.tensors()) {
    if (info.source_bytes() > 1 << 24) continue;
    auto decoder = Decoder::create(info, &pool);
    if (!decoder) continue;
    for (uint16_t i = 0; i < info.fragment_count; ++i)
      if (auto fragment = reader.read_fragment(info, i))
        (void)decoder->add_fragment(*std::move(fragment));
    if (decoder->can_reconstruct()) (void)decoder->reconstruct();
  }
}

void directory(std::span<const std::byte> bytes) {
  FileHeader header{.file_size = 1 << 20,
                    .directory_stored = bytes.size(),
                    .directory_raw = bytes.size(),
                    .tensor_count = bytes.empty() ? 0u : static_cast<uint32_t>(bytes[0]) % 4,
                    .directory_codec = Codec::none,
                    .directory_hash = hash64(bytes)};
  auto file = write_header(header);
  file.insert(file.end(), bytes.begin(), bytes.end());
  file.resize(1 << 16);
  if (const auto reader = Reader::from_memory(SharedBytes::owned(std::move(file))))
    decode_all(*reader);
}

// One small tensor a type and distribution, with every feature of a block: zeros, exceptions,
// scales.
const EncodedTensor& sample(size_t which) {
  static const auto samples = [] {
    std::vector<EncodedTensor> made;
    for (const DType type : {DType::bf16, DType::f32, DType::i8, DType::f8e4m3fn}) {
      for (const auto distribution : {Distribution::ordered, Distribution::any}) {
        const int64_t shape[] = {3, 700};
        std::vector<std::byte> bytes(bytes_for(type, 2100));
        uint32_t state = 1;
        for (size_t i = 0; i < bytes.size(); ++i) {
          state = state * 1664525 + 1013904223;
          bytes[i] = i % 64 < 4 ? std::byte{0} : static_cast<std::byte>(state >> 24);
        }
        made.push_back(*Encoder({.distribution = distribution,
                                 .fragments = 3,
                                 .target = QualityTarget::nmse(0),
                                 .min_fragments = 1,
                                 .pool = &pool})
                            .encode({"w", type, shape, bytes}));
      }
    }
    return made;
  }();
  return samples[which % samples.size()];
}

// A damaged payload never gives a tensor that claims to be exact and is not.
void payload(const EncodedTensor& encoded, size_t place, std::span<const std::byte> bytes) {
  auto decoder = Decoder::create(encoded.info, &pool);
  for (uint16_t i = 0; i < encoded.info.fragment_count; ++i)
    (void)decoder->add_fragment(i == place ? SharedBytes::owned(make_fragment(
                                                 encoded.info, i, {bytes.begin(), bytes.end()}))
                                           : SharedBytes::borrowed(encoded.fragments[i]));
  if (!decoder->can_reconstruct()) return;
  const auto given = decoder->reconstruct();
  if (given && decoder->quality().exact && hash64(*given) != encoded.info.content_hash)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  const EncodedTensor& encoded = sample(data[1]);
  const size_t place = data[1] / 8 % encoded.fragments.size();
  switch (data[0] % 5) {
    case 0:
      if (const auto reader = Reader::from_memory(SharedBytes::borrowed(bytes)))
        decode_all(*reader);
      break;
    case 1:
      directory(bytes);
      break;
    case 2:
      payload(encoded, place, bytes);
      break;
    case 3: {
      const auto fragment = *parse_fragment(SharedBytes::borrowed(encoded.fragments[place]));
      const auto good = *payload_of(fragment, 1 << 24);
      std::vector<std::byte> changed(good.view.begin(), good.view.end());
      for (size_t i = 0; i + 3 <= bytes.size(); i += 3)
        changed[load<uint16_t>(bytes.data() + i) % changed.size()] ^= bytes[i + 2];
      payload(encoded, place, changed);
      break;
    }
    case 4: {
      std::vector<std::byte> file(bytes.begin(), bytes.end());
      if (file.size() >= 96) {
        const uint64_t hash = hash64(std::span(file).first(88));
        std::memcpy(file.data() + 88, &hash, 8);
      }
      if (const auto parsed = parse_htns(file); parsed && parsed->elements <= 4096)
        (void)decode_htns(file);
      break;
    }
  }
  return 0;
}
