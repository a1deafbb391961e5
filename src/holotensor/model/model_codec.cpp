#include "holotensor/model/model_codec.h"

#include <algorithm>
#include <unordered_set>

#include "holotensor/model/choose_scheme.h"
#include "holotensor/policy/glob.h"
#include "holotensor/reader.h"
#include "holotensor/safetensors.h"
#include "holotensor/values.h"
#include "holotensor/writer.h"

namespace hologram::holotensor {
namespace {

// Where rounding would change meaning (indices, counters, masks), or save nothing.
bool must_be_exact(const ModelTensor& tensor, uint64_t elements, uint64_t exact_below) {
  return elements < exact_below || !converts_to_f32(tensor.dtype) ||
         (is_integer(tensor.dtype) && bits_of(tensor.dtype) > 8);
}

EncoderOptions options_for(const ModelTensor& tensor, const EncodeModelOptions& options) {
  EncoderOptions encoder = options.encoder;
  for (const EncodeRule& rule : options.rules) {
    if (!glob_matches(rule.pattern, tensor.name)) continue;
    encoder.target_bits = rule.target_bits;
    encoder.target = rule.target;
    break;
  }
  return encoder;
}

// Encodes a tensor into the file.
Result<TensorInfo> encode_one(const ModelInput& input, size_t index,
                              const EncodeModelOptions& options, Writer& writer) {
  const ModelTensor& tensor = input.tensors()[index];
  TensorView view{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
  const std::unique_ptr<TensorBytes> stored = input.stored(index);
  SharedBytes bytes;
  if (stored) {
    view.stored = stored.get();
  } else {
    HOLOGRAM_TRY(bytes, input.read(index));
    view.bytes = bytes.view;
  }
  HOLOGRAM_TRY(const uint64_t elements, element_count(tensor.shape, tensor.dtype));
  EncoderOptions encoder = options_for(tensor, options);
  if (must_be_exact(tensor, elements, options.exact_below)) {
    encoder.scheme = SchemeId::refine;
    encoder.target_bits.reset();
    encoder.target.reset();
  } else if (options.automatic) {
    HOLOGRAM_TRY(auto choice, choose_scheme(view, encoder));
    HOLOGRAM_CHECK(writer.add(std::move(choice.encoded)));
    return writer.tensors().back();
  }
  return writer.add(Encoder(std::move(encoder)), view);
}

Status report(const OnModelProgress& progress, const ModelProgress& state) {
  return progress ? progress(state) : Status();
}

}  // namespace

Result<EncodeModelResult> encode_model(const ModelInput& input, const std::filesystem::path& output,
                                       const EncodeModelOptions& options,
                                       const OnModelProgress& progress) {
  EncodeModelResult result;
  ModelProgress state{.count = input.tensors().size()};
  for (const ModelTensor& tensor : input.tensors()) {
    HOLOGRAM_TRY(const uint64_t elements,
                 in_context(element_count(tensor.shape, tensor.dtype),
                            [&] { return fmt::format("tensor '{}'", tensor.name); }));
    state.bytes_total += bytes_for(tensor.dtype, elements);
  }
  HOLOGRAM_TRY(auto writer, Writer::create(output));
  for (; state.index < state.count; ++state.index) {
    const ModelTensor& tensor = input.tensors()[state.index];
    state.tensor = tensor.name;
    HOLOGRAM_CHECK(report(progress, state));
    HOLOGRAM_TRY(const TensorInfo info, encode_one(input, state.index, options, writer));
    result.tensors.push_back(
        {tensor.name, info.scheme, info.source_bytes(), info.stored_bytes(), info.curve.back()});
    result.source_bytes += info.source_bytes();
    state.bytes_done += info.source_bytes();
  }
  state.tensor = {};
  HOLOGRAM_CHECK(report(progress, state));
  HOLOGRAM_TRY(result.file_bytes, writer.finish());
  return result;
}

Result<EncodeModelResult> encode_model(const std::filesystem::path& input,
                                       const std::filesystem::path& output,
                                       const EncodeModelOptions& options,
                                       const OnModelProgress& progress) {
  HOLOGRAM_TRY(const auto model, safetensors_input(input));
  return in_context(encode_model(*model, output, options, progress),
                    [&] { return input.string(); });
}

namespace {

DType output_type(const TensorInfo& info, const DecodeModelOptions& options) {
  const bool floating = !is_integer(info.dtype) && converts_to_f32(info.dtype);
  return options.type && floating ? *options.type : info.dtype;
}

Result<Decoder> decode_one(const Reader& reader, const TensorInfo& info,
                           const DecodeModelOptions& options, const QualityController& controller) {
  if (options.fragments) {
    HOLOGRAM_TRY(auto decoder, Decoder::create(info));
    const size_t count = std::clamp<size_t>(*options.fragments, 1, info.fragment_count);
    for (uint16_t i = 0; i < count; ++i) {
      HOLOGRAM_TRY(auto fragment, reader.read_fragment(info, i));
      HOLOGRAM_CHECK(decoder.add_fragment(std::move(fragment)));
    }
    return decoder;
  }
  const Quality& best = info.curve.back();
  const QualityTarget all{.max_nmse = best.nmse, .exact = best.exact};
  return reader.decode_to_quality(info, controller.target_for(info.name).value_or(all));
}

}  // namespace

Result<DecodeModelResult> decode_model(const std::filesystem::path& input,
                                       const std::filesystem::path& output,
                                       const DecodeModelOptions& options,
                                       const OnModelProgress& progress) {
  const auto place = [&] { return input.string(); };
  HOLOGRAM_TRY(const auto reader, Reader::open(input));
  const QualityController controller({.target = options.target, .rules = options.rules});
  std::vector<const TensorInfo*> chosen;
  std::vector<SafetensorsEntry> entries;
  ModelProgress state;
  for (const TensorInfo& info : reader.tensors()) {
    const auto wanted = [&](const std::string& pattern) {
      return glob_matches(pattern, info.name);
    };
    if (!options.tensors.empty() && std::ranges::none_of(options.tensors, wanted)) continue;
    chosen.push_back(&info);
    entries.push_back({info.name, output_type(info, options), info.shape});
    state.bytes_total += info.source_bytes();
  }
  if (chosen.empty() && !options.tensors.empty()) {
    return fail(ErrorCode::not_found, "{}: no tensor's name matches", input.string());
  }
  state.count = chosen.size();
  DecodeModelResult result{.bytes_read = reader.overhead(),
                           .file_bytes = reader.file_size(),
                           .tensors = chosen.size(),
                           .worst = {.nmse = 0, .exact = true}};
  std::unordered_set<uint64_t> read;  // offsets of fragments
  HOLOGRAM_TRY(auto writer, SafetensorsWriter::create(output, std::move(entries)));
  for (; state.index < chosen.size(); ++state.index) {
    const TensorInfo& info = *chosen[state.index];
    state.tensor = info.name;
    HOLOGRAM_CHECK(report(progress, state));
    HOLOGRAM_TRY(const Decoder decoder,
                 in_context(decode_one(reader, info, options, controller), place));
    for (uint16_t i = 0; i < info.fragment_count; ++i) {
      // Equal tensors share their fragments.
      const FragmentEntry& entry = info.fragments[i];
      if (decoder.has(i) && read.insert(entry.offset).second) result.bytes_read += entry.size;
    }
    const Quality quality = decoder.quality();
    const auto badness = [](const Quality& q) { return q.exact ? -1.0 : q.nmse; };
    if (result.worst_tensor.empty() || badness(quality) > badness(result.worst)) {
      result.worst = quality;
      result.worst_tensor = info.name;
    }
    const auto write = [&](std::span<const std::byte> bytes) { return writer.write(bytes); };
    HOLOGRAM_CHECK(in_context(decoder.reconstruct(output_type(info, options), write), place));
    state.bytes_done += info.source_bytes();
  }
  state.tensor = {};
  HOLOGRAM_CHECK(report(progress, state));
  HOLOGRAM_CHECK(writer.finish());
  return result;
}

}  // namespace hologram::holotensor
