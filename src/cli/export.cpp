// `hologram export`: an archive in parts that other tools read.
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "archive/archive.h"
#include "archive/kernels.h"
#include "cli/command.h"
#include "cli/inspect/text.h"
#include "holotensor/reader.h"
#include "holotensor/safetensors.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  fs::path file, output;
};

// What the values that read each constant are called, subplans included: the first name wins.
void name_constants(const archive::Plan& plan, std::map<int32_t, std::string>& names) {
  if (plan.values())
    for (const archive::Value* value : *plan.values())
      if (value->storage() == archive::Storage::constant && value->name())
        names.try_emplace(value->constant(), value->name()->str());
  if (plan.steps())
    for (const archive::Step* step : *plan.steps())
      if (step->subplans())
        for (const archive::Subplan* subplan : *step->subplans())
          if (subplan->plan()) name_constants(*subplan->plan(), names);
}

// Constants that lie as HoloTensor fragments, decoded one at a time, as well as they are stored.
class StoredWeights {
 public:
  static Result<StoredWeights> open(const archive::Archive& archive) {
    StoredWeights weights;
    if (archive.weights().empty()) return weights;
    HOLOGRAM_TRY(weights.reader_,
                 holotensor::Reader::from_memory({archive.weights(), archive.owner()}));
    return weights;
  }
  // `size`: of the constant in the plan.
  Result<std::vector<std::byte>> decode(int32_t tensor, DType type, uint64_t size) const {
    using holotensor::QualityTarget;
    if (!reader_ || static_cast<size_t>(tensor) >= reader_->tensors().size())
      return fail(ErrorCode::corrupt, "a constant that the weights do not hold");
    const holotensor::TensorInfo& info = reader_->tensors()[static_cast<size_t>(tensor)];
    const holotensor::Quality& best = info.curve.back();
    const auto target = best.exact ? QualityTarget::lossless() : QualityTarget::nmse(best.nmse);
    HOLOGRAM_TRY(const auto decoder, reader_->decode_to_quality(info, target));
    HOLOGRAM_TRY(auto bytes, decoder.reconstruct(type));
    if (bytes.size() != size)
      return fail(ErrorCode::corrupt, "tensor '{}' has {} bytes; the plan says {}", info.name,
                  bytes.size(), size);
    return bytes;
  }

 private:
  std::optional<holotensor::Reader> reader_;
};

// Constants with unique names. What safetensors has no type for goes as bytes, or into the
// metadata: "type:NAME" says what the bytes are, "strings:NAME" is a JSON list.
Status export_constants(const archive::Archive& archive, const fs::path& path) {
  HOLOGRAM_CHECK(archive.verify());
  std::map<int32_t, std::string> names;
  name_constants(*archive.model().plan(), names);
  std::vector<holotensor::SafetensorsEntry> entries;
  HOLOGRAM_TRY(const StoredWeights weights, StoredWeights::open(archive));
  std::vector<const archive::Constant*> written;
  holotensor::SafetensorsMetadata metadata{{"format", "hologram"}};
  std::map<std::string, int> used;
  const auto* constants = archive.model().constants();
  for (flatbuffers::uoffset_t i = 0; constants && i < constants->size(); ++i) {
    const archive::Constant& constant = *constants->Get(i);
    const auto found = names.find(static_cast<int32_t>(i));
    std::string name = found == names.end() ? fmt::format("constant_{}", i) : found->second;
    if (used[name]++ > 0) name += fmt::format("#{}", i);
    const auto type = static_cast<DType>(constant.dtype());
    std::vector<int64_t> shape;
    if (constant.dims()) shape.assign(constant.dims()->begin(), constant.dims()->end());
    if (type == DType::string) {
      nlohmann::json texts = nlohmann::json::array();
      if (constant.strings())
        for (const flatbuffers::String* text : *constant.strings()) texts.push_back(text->str());
      metadata["strings:" + name] =
          texts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      continue;
    }
    if (!holotensor::safetensors_name(type)) {
      metadata["type:" + name] = fmt::format("{} [{}]", name_of(type), fmt::join(shape, ", "));
      entries.push_back({name, DType::u8, {static_cast<int64_t>(constant.size())}, 0, 0});
    } else {
      entries.push_back({name, type, std::move(shape), 0, 0});
    }
    written.push_back(&constant);
  }
  HOLOGRAM_TRY(auto writer, holotensor::SafetensorsWriter::create(path, entries, metadata));
  for (const archive::Constant* constant : written) {
    if (constant->tensor() < 0) {
      HOLOGRAM_TRY(const auto all, archive.constants());
      HOLOGRAM_CHECK(writer.write(all.subspan(constant->offset(), constant->size())));
      continue;
    }
    const auto type = static_cast<DType>(constant->dtype());
    HOLOGRAM_TRY(const auto bytes, weights.decode(constant->tensor(), type, constant->size()));
    HOLOGRAM_CHECK(writer.write(bytes));
  }
  HOLOGRAM_CHECK(writer.finish());
  fmt::print("{}: {} constants\n", path.string(), entries.size());
  return {};
}

Status write_program(const fs::path& path, std::span<const std::byte> bytes, const char* what) {
  HOLOGRAM_CHECK(write_file(path, bytes));
  fmt::print("{}: {}, {}\n", path.string(), what, readable_size(bytes.size()));
  return {};
}

Status export_archive(const Arguments& arguments) {
  fs::path stem = arguments.output.empty() ? arguments.file : arguments.output;
  if (arguments.output.empty() || stem.extension() == ".safetensors" || stem.extension() == ".bin")
    stem.replace_extension();
  const auto with = [&](const char* extension) { return fs::path(stem.string() + extension); };
  const auto archive = archive::Archive::open(arguments.file);
  if (!archive) {
    if (const auto kernels = archive::read_kernels(arguments.file); kernels)
      return write_program(with(".bin"), *kernels, "a bundle of kernels");
    return std::unexpected(archive.error());
  }
  HOLOGRAM_CHECK(export_constants(*archive, with(".safetensors")));
  HOLOGRAM_TRY(const FileMap file, FileMap::open(arguments.file));
  for (const archive::Section& section : archive->sections())
    if (section.kind == archive::SectionKind::plan)
      return write_program(with(".bin"), file.bytes().subspan(section.offset, section.size),
                           "the plan and its programs");
  return fail(ErrorCode::corrupt, "the archive has no plan");
}

}  // namespace

void add_export(Commands& commands) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = commands.add(
      "export", "Write the constants as .safetensors and the program as .bin",
      "  hologram export resnet50.holo              writes resnet50.safetensors and resnet50.bin\n"
      "  hologram export resnet50.holo -o out/weights",
      [arguments] { return export_archive(*arguments); });
  command->add_option("file", arguments->file, "A .holo archive")->required();
  command->add_option("-o,--output", arguments->output,
                      "Both names without their extensions; beside the archive where not given");
}

}  // namespace hologram::cli
