// Any bytes as parameters and payloads of the classical schemes: an error or a tensor.
#include <vector>

#include "holotensor/byte_io.h"
#include "holotensor/scheme.h"
#include "holotensor/tensor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hologram;
  using namespace hologram::holotensor;
  ByteReader in(std::as_bytes(std::span(data, size)));
  TensorInfo info;
  info.scheme = static_cast<SchemeId>(2 + in.get<uint8_t>() % 3);
  const DType types[] = {DType::f32, DType::bf16, DType::i8, DType::f64};
  info.dtype = types[in.get<uint8_t>() % 4];
  info.shape = {in.get<uint8_t>(), in.get<uint8_t>()};
  info.fragment_count = static_cast<uint16_t>(1 + in.get<uint8_t>() % 4);
  info.min_fragments = 1;
  info.curve.resize(info.fragment_count + size_t{1});
  info.curve.back().exact = in.get<uint8_t>() % 2 == 1;
  const auto parameters = in.bytes(std::min<size_t>(in.get<uint8_t>(), in.rest().size()));
  info.parameters.assign(parameters.begin(), parameters.end());
  const auto decoder = make_scheme_decoder(info);
  if (!decoder) return 0;
  ThreadPool pool(1);
  for (uint16_t i = 0; i < info.fragment_count && in.ok(); ++i) {
    const auto payload = in.bytes(std::min<size_t>(in.get<uint16_t>(), in.rest().size()));
    (void)(*decoder)->add(i, SharedBytes::borrowed(payload));
  }
  if ((*decoder)->usable() == 0) return 0;
  std::vector<std::byte> out(info.source_bytes());
  (void)(*decoder)->reconstruct(info.dtype, out, pool);
  return 0;
}
