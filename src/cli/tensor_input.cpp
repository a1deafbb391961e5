#include "cli/tensor_input.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "cli/npz.h"
#include "onnx/tensor.h"
#include "support/file.h"
#include "support/npy.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using runtime::PortInfo;

Result<Value> from_npy(const NpyArray& array) {
  HOLOGRAM_TRY(Tensor tensor, Tensor::allocate(array.type, Dims(array.shape)));
  if (!array.data.empty()) std::memcpy(tensor.data, array.data.data(), array.data.size());
  return Value(std::move(tensor));
}

// The shape to use where a file does not say: --shape, or the model's own when it has no symbols.
Result<std::vector<int64_t>> shape_of(const PortInfo& port,
                                      const std::map<std::string, std::string>& shapes,
                                      std::span<const PortInfo> ports) {
  const auto given = shapes.find(port.name);
  Shape shape;
  if (given != shapes.end()) {
    HOLOGRAM_TRY(shape, Shape::parse(given->second));
  } else if (port.shape) {
    shape = *port.shape;
  }
  if ((given != shapes.end() || port.shape) && shape.is_static()) return shape.to_vector();
  // All that may be needed at once, ready to be filled in.
  std::string options;
  for (const PortInfo& open : ports) {
    if (shapes.contains(open.name) || (open.shape && open.shape->is_static())) continue;
    options += fmt::format(" --shape {}=", open.name);
    for (size_t i = 0; open.shape && i < open.shape->rank(); ++i)
      options += (i ? "," : "") + (*open.shape)[i].to_string();
  }
  return fail(ErrorCode::invalid_argument,
              "input '{}' has no fixed shape; write numbers for the names in\n {}", port.name,
              options);
}

Result<Value> read_picture(const PortInfo& port, const fs::path& path,
                           const std::vector<int64_t>& shape, const std::string& spec) {
  HOLOGRAM_TRY(ImageOptions options, ImageOptions::parse(spec.empty() ? "unit" : spec));
  if (port.dtype != DType::f32 || shape.size() != 4)
    return fail(ErrorCode::type_mismatch,
                "input '{}' is {} of rank {}: a picture becomes f32 [1, 3, height, width]",
                port.name, name_of(port.dtype), shape.size());
  if (shape[1] != 3 && shape[3] == 3 && spec.find("layout") == std::string::npos)
    options.channels_first = false;
  const int64_t channels = options.channels_first ? shape[1] : shape[3];
  const int64_t height = options.channels_first ? shape[2] : shape[1];
  const int64_t width = options.channels_first ? shape[3] : shape[2];
  if (channels != 3 || shape[0] != 1 || height <= 0 || width <= 0 || height > 65536 ||
      width > 65536)
    return fail(ErrorCode::shape_mismatch,
                "input '{}' has shape [{}]: a picture becomes [1, 3, height, width] or, with "
                "layout=nhwc, [1, height, width, 3]",
                port.name, fmt::join(shape, ", "));
  HOLOGRAM_TRY(const Image image, read_image(path));
  return from_npy(to_tensor(image, static_cast<int>(width), static_cast<int>(height), options));
}

Result<Value> read_raw(const PortInfo& port, const fs::path& path,
                       const std::vector<int64_t>& shape) {
  HOLOGRAM_TRY(const FileMap file, FileMap::open(path));
  HOLOGRAM_TRY(Tensor tensor, Tensor::allocate(port.dtype, Dims(shape)));
  if (port.dtype == DType::string || file.size() != tensor.bytes())
    return fail(ErrorCode::shape_mismatch, "'{}' has {} bytes; input '{}' is {} [{}], {} bytes",
                path.string(), file.size(), port.name, name_of(port.dtype), fmt::join(shape, ", "),
                tensor.bytes());
  if (file.size() > 0) std::memcpy(tensor.data, file.bytes().data(), file.size());
  return Value(std::move(tensor));
}

// Small numbers that most models accept: normal floats, integers 0..9, random booleans.
Result<Value> draw(const PortInfo& port, const std::vector<int64_t>& shape, uint64_t seed) {
  HOLOGRAM_TRY(Tensor tensor, Tensor::allocate(port.dtype, Dims(shape)));
  std::mt19937_64 random(seed ^ std::hash<std::string>()(port.name));
  std::normal_distribution<float> normal;
  const auto fill = [&]<typename T>(T*, auto next) {
    for (T& element : tensor.span<T>()) element = static_cast<T>(next());
  };
  const auto digit = [&] { return random() % 10; };
  const auto gauss = [&] { return normal(random); };
  switch (port.dtype) {
    case DType::f32:
      fill(static_cast<float*>(nullptr), gauss);
      break;
    case DType::f64:
      fill(static_cast<double*>(nullptr), gauss);
      break;
    case DType::f16:
      fill(static_cast<Half*>(nullptr), gauss);
      break;
    case DType::bf16:
      fill(static_cast<BFloat16*>(nullptr), gauss);
      break;
    case DType::i64:
    case DType::u64:
      fill(static_cast<int64_t*>(nullptr), digit);
      break;
    case DType::i32:
    case DType::u32:
      fill(static_cast<int32_t*>(nullptr), digit);
      break;
    case DType::i16:
    case DType::u16:
      fill(static_cast<int16_t*>(nullptr), digit);
      break;
    case DType::i8:
    case DType::u8:
      fill(static_cast<int8_t*>(nullptr), digit);
      break;
    case DType::boolean:
      fill(static_cast<uint8_t*>(nullptr), [&] { return random() % 2; });
      break;
    default:
      return fail(ErrorCode::unsupported,
                  "input '{}' of type {} is not drawn at random: give a file", port.name,
                  name_of(port.dtype));
  }
  return Value(std::move(tensor));
}

Status check(const PortInfo& port, const Value& value) {
  if (port.kind != PortInfo::Kind::tensor || !value.is_tensor()) return {};
  if (value.tensor.dtype != port.dtype)
    return fail(ErrorCode::type_mismatch, "input '{}' is {}, the file holds {}{}", port.name,
                name_of(port.dtype), name_of(value.tensor.dtype),
                port.dtype == DType::f32 && value.tensor.dtype == DType::f64
                    ? " (NumPy's default: save it with .astype(np.float32))"
                    : "");
  if (port.shape && port.shape->rank() != value.tensor.dims.size())
    return fail(ErrorCode::shape_mismatch, "input '{}' is {}, the file holds {}", port.name,
                port.shape->to_string(), value.tensor.dims.to_string());
  return {};
}

}  // namespace

std::pair<std::string, std::string> split_assignment(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {"", std::string(text)};
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::string describe(std::span<const PortInfo> ports) {
  std::string text;
  for (const PortInfo& port : ports) {
    const char* kind = port.kind == PortInfo::Kind::sequence   ? "sequence of "
                       : port.kind == PortInfo::Kind::optional ? "optional "
                                                               : "";
    text += fmt::format("{}  {}: {}{} {}", text.empty() ? "" : "\n", port.name, kind,
                        name_of(port.dtype), port.shape ? port.shape->to_string() : "of any shape");
  }
  return text;
}

Result<std::vector<Value>> read_inputs(std::span<const PortInfo> ports,
                                       const InputOptions& options) {
  if (!options.image.empty()) HOLOGRAM_CHECK(ImageOptions::parse(options.image));
  std::map<std::string, std::string> shapes;
  for (const std::string& text : options.shapes) {
    const auto [name, shape] = split_assignment(text);
    shapes[name.empty() && ports.size() == 1 ? ports[0].name : name] = shape;
  }
  std::map<std::string, fs::path> files;
  std::map<std::string, NpyArray> arrays;
  for (const std::string& text : options.files) {
    auto [name, path] = split_assignment(text);
    if (name.empty() && fs::path(path).extension() == ".npz") {
      HOLOGRAM_TRY(auto found, read_npz(path));
      for (const auto& [array, contents] : found)
        if (std::none_of(ports.begin(), ports.end(),
                         [&](const PortInfo& port) { return port.name == array; }))
          return fail(ErrorCode::not_found,
                      "'{}' holds '{}', which is no input; the model takes\n{}", path, array,
                      describe(ports));
      arrays.merge(found);
      continue;
    }
    if (name.empty() && ports.size() == 1) name = ports[0].name;
    if (std::none_of(ports.begin(), ports.end(),
                     [&](const PortInfo& port) { return port.name == name; }))
      return fail(ErrorCode::not_found, "{}; write --input NAME=FILE with one of\n{}",
                  name.empty() ? fmt::format("which input is '{}'", path)
                               : fmt::format("the model has no input '{}'", name),
                  describe(ports));
    if (!files.emplace(name, path).second)
      return fail(ErrorCode::invalid_argument, "input '{}' is given twice", name);
  }

  std::vector<Value> values;
  for (const PortInfo& port : ports) {
    const auto read = [&]() -> Result<Value> {
      const auto file = files.find(port.name);
      if (file == files.end()) {
        if (const auto array = arrays.find(port.name); array != arrays.end())
          return from_npy(array->second);
        if (!options.random)
          return fail(ErrorCode::invalid_argument,
                      "input '{}' is not given (or write --random); the model takes\n{}", port.name,
                      describe(ports));
        HOLOGRAM_TRY(const auto shape, shape_of(port, shapes, ports));
        return draw(port, shape, options.seed);
      }
      const fs::path& path = file->second;
      const std::string extension = path.extension().string();
      if (extension == ".npy") {
        HOLOGRAM_TRY(const NpyArray array, read_npy(path));
        return from_npy(array);
      }
      if (extension == ".npz") {
        HOLOGRAM_TRY(const auto found, read_npz(path));
        const auto array = found.size() == 1 ? found.begin() : found.find(port.name);
        if (array == found.end())
          return fail(ErrorCode::not_found, "'{}' has no array '{}'", path.string(), port.name);
        return from_npy(array->second);
      }
      if (extension == ".pb") {
        const auto tensor = graph::ValueType::tensor(port.dtype, port.shape);
        return onnx::read_value_file(path, tensor);
      }
      HOLOGRAM_TRY(const auto shape, shape_of(port, shapes, ports));
      if (extension == ".png" || extension == ".jpg" || extension == ".jpeg")
        return read_picture(port, path, shape, options.image);
      return read_raw(port, path, shape);
    };
    HOLOGRAM_TRY(Value value, read());
    HOLOGRAM_CHECK(check(port, value));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace hologram::cli
