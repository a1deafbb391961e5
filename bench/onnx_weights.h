// The initializers of an ONNX file, for benchmarks that need trained weights and no graph.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "support/dtype.h"

namespace hologram::bench {

struct OnnxTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

// Tensors with raw data of a type that HoloTensor refines; others are left out. Exits on a bad
// file.
inline std::vector<OnnxTensor> onnx_weights(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string data((std::istreambuf_iterator<char>(file)), {});
  if (data.empty()) {
    std::fprintf(stderr, "error: cannot read %s\n", path.c_str());
    std::exit(1);
  }
  std::vector<OnnxTensor> tensors;
  const auto read_tensor = [&](protozero::pbf_reader message) {
    OnnxTensor tensor;
    int type = 0;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          if (message.wire_type() == protozero::pbf_wire_type::varint)
            tensor.shape.push_back(message.get_int64());
          else
            for (const int64_t dim : message.get_packed_int64()) tensor.shape.push_back(dim);
          break;
        case 2:
          type = message.get_int32();
          break;
        case 4:  // float_data
          if (message.wire_type() == protozero::pbf_wire_type::length_delimited) {
            const auto view = message.get_view();
            const auto* begin = reinterpret_cast<const std::byte*>(view.data());
            tensor.bytes.insert(tensor.bytes.end(), begin, begin + view.size());
          } else {
            message.skip();
          }
          break;
        case 8:
          tensor.name = message.get_string();
          break;
        case 9: {
          const auto view = message.get_view();
          const auto* begin = reinterpret_cast<const std::byte*>(view.data());
          tensor.bytes.assign(begin, begin + view.size());
          break;
        }
        default:
          message.skip();
      }
    }
    switch (type) {
      case 1:
        tensor.dtype = DType::f32;
        break;
      case 2:
        tensor.dtype = DType::u8;
        break;
      case 3:
        tensor.dtype = DType::i8;
        break;
      case 10:
        tensor.dtype = DType::f16;
        break;
      case 16:
        tensor.dtype = DType::bf16;
        break;
      default:
        return;
    }
    uint64_t count = 1;
    for (const int64_t dim : tensor.shape) count *= static_cast<uint64_t>(dim);
    if (!tensor.bytes.empty() && tensor.bytes.size() == bytes_for(tensor.dtype, count))
      tensors.push_back(std::move(tensor));
  };
  protozero::pbf_reader model(data);
  while (model.next(7)) {  // graph
    protozero::pbf_reader graph = model.get_message();
    while (graph.next()) {
      if (graph.tag() == 5) {  // initializer
        read_tensor(graph.get_message());
      } else if (graph.tag() == 1) {  // node: Constant nodes hold tensors in attributes
        protozero::pbf_reader node = graph.get_message();
        while (node.next(5)) {
          protozero::pbf_reader attribute = node.get_message();
          while (attribute.next(5)) read_tensor(attribute.get_message());
        }
      } else {
        graph.skip();
      }
    }
  }
  return tensors;
}

}  // namespace hologram::bench
