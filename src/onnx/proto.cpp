#include "onnx/proto.h"

#include "onnx/pbf_reader.h"

namespace hologram::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

std::string_view view(pbf_reader& m) {
  const auto v = m.get_view();
  return {v.data(), v.size()};
}

// A nesting that no honest model has would exhaust the stack.
constexpr int kDeepest = 100;
struct Depth {
  explicit Depth(int& d) : d_(d) {
    if (++d_ > kDeepest) throw protozero::invalid_length_exception();
  }
  ~Depth() { --d_; }
  int& d_;
};
thread_local int depth = 0;

// Repeated numbers come packed or one at a time.
template <typename T, typename Packed, typename One>
void read_repeated(pbf_reader& m, std::vector<T>& out, Packed packed, One one) {
  if (m.wire_type() == pbf_wire_type::length_delimited) {
    auto range = packed(m);
    for (auto value : range) out.push_back(static_cast<T>(value));
  } else {
    out.push_back(static_cast<T>(one(m)));
  }
}
void read_longs(pbf_reader& m, std::vector<int64_t>& out) {
  read_repeated(
      m, out, [](pbf_reader& r) { return r.get_packed_int64(); },
      [](pbf_reader& r) { return r.get_int64(); });
}
void read_floats(pbf_reader& m, std::vector<float>& out) {
  read_repeated(
      m, out, [](pbf_reader& r) { return r.get_packed_float(); },
      [](pbf_reader& r) { return r.get_float(); });
}

std::pair<std::string, std::string> read_pair(pbf_reader m) {
  std::pair<std::string, std::string> result;
  while (m.next()) {
    if (m.tag() == 1)
      result.first = view(m);
    else if (m.tag() == 2)
      result.second = view(m);
    else
      m.skip();
  }
  return result;
}

TensorProto read_tensor(pbf_reader m) {
  TensorProto t;
  while (m.next()) switch (m.tag()) {
      case 1:
        read_longs(m, t.dims);
        break;
      case 2:
        t.data_type = m.get_int32();
        break;
      case 4:
        read_floats(m, t.floats);
        break;
      case 5:
        read_repeated(
            m, t.ints, [](pbf_reader& r) { return r.get_packed_int32(); },
            [](pbf_reader& r) { return r.get_int32(); });
        break;
      case 6:
        t.strings.push_back(view(m));
        break;
      case 7:
        read_longs(m, t.longs);
        break;
      case 8:
        t.name = view(m);
        break;
      case 9:
        t.raw = view(m);
        break;
      case 10:
        read_repeated(
            m, t.doubles, [](pbf_reader& r) { return r.get_packed_double(); },
            [](pbf_reader& r) { return r.get_double(); });
        break;
      case 11:
        read_repeated(
            m, t.unsigned_longs, [](pbf_reader& r) { return r.get_packed_uint64(); },
            [](pbf_reader& r) { return r.get_uint64(); });
        break;
      case 13:
        t.external_data.insert(read_pair(m.get_message()));
        break;
      case 14:
        t.external = m.get_int32() == 1;
        break;
      default:
        m.skip();
    }
  return t;
}

SparseTensorProto read_sparse(pbf_reader m) {
  SparseTensorProto t;
  while (m.next()) switch (m.tag()) {
      case 1:
        t.values = read_tensor(m.get_message());
        break;
      case 2:
        t.indices = read_tensor(m.get_message());
        break;
      case 3:
        read_longs(m, t.dims);
        break;
      default:
        m.skip();
    }
  return t;
}

std::vector<DimProto> read_shape(pbf_reader m) {
  std::vector<DimProto> dims;
  while (m.next()) {
    if (m.tag() != 1) {
      m.skip();
      continue;
    }
    DimProto dim;
    pbf_reader d = m.get_message();
    while (d.next()) {
      if (d.tag() == 1)
        dim.value = d.get_int64();
      else if (d.tag() == 2)
        dim.symbol = view(d);
      else
        d.skip();
    }
    dims.push_back(dim);
  }
  return dims;
}

TypeProto read_type(pbf_reader m) {
  Depth guard(depth);
  TypeProto t;
  auto tensor = [&](TypeProto::Kind kind) {
    t.kind = kind;
    pbf_reader r = m.get_message();
    while (r.next()) {
      if (r.tag() == 1)
        t.element = r.get_int32();
      else if (r.tag() == 2)
        t.shape = read_shape(r.get_message());
      else
        r.skip();
    }
  };
  auto wrapper = [&](TypeProto::Kind kind) {
    t.kind = kind;
    pbf_reader r = m.get_message();
    while (r.next()) {
      if (r.tag() == 1 && kind != TypeProto::Kind::map)
        t.inner.push_back(read_type(r.get_message()));
      else
        r.skip();
    }
  };
  while (m.next()) switch (m.tag()) {
      case 1:
        tensor(TypeProto::Kind::tensor);
        break;
      case 8:
        tensor(TypeProto::Kind::sparse);
        break;
      case 4:
        wrapper(TypeProto::Kind::sequence);
        break;
      case 5:
        wrapper(TypeProto::Kind::map);
        break;
      case 9:
        wrapper(TypeProto::Kind::optional);
        break;
      case 7:
        t.kind = TypeProto::Kind::opaque;
        m.skip();
        break;
      default:
        m.skip();
    }
  return t;
}

ValueProto read_value(pbf_reader m) {
  ValueProto v;
  while (m.next()) switch (m.tag()) {
      case 1:
        v.name = view(m);
        break;
      case 2:
        v.type = read_type(m.get_message());
        break;
      default:
        m.skip();
    }
  return v;
}

GraphProto read_graph(pbf_reader m);

AttributeProto read_attribute(pbf_reader m) {
  AttributeProto a;
  while (m.next()) switch (m.tag()) {
      case 1:
        a.name = view(m);
        break;
      case 2:
        a.number = m.get_float();
        break;
      case 3:
        a.integer = m.get_int64();
        break;
      case 4:
        a.text = view(m);
        break;
      case 5:
      case 10:
        a.tensors.push_back(read_tensor(m.get_message()));
        break;
      case 6:
      case 11:
        a.graphs.push_back(read_graph(m.get_message()));
        break;
      case 7:
        read_floats(m, a.numbers);
        break;
      case 8:
        read_longs(m, a.integers);
        break;
      case 9:
        a.texts.push_back(view(m));
        break;
      case 14:
      case 15:
        a.types.push_back(read_type(m.get_message()));
        break;
      case 20:
        a.type = m.get_int32();
        break;
      case 21:
        a.reference = view(m);
        break;
      case 22:
      case 23:
        a.sparse.push_back(read_sparse(m.get_message()));
        break;
      default:
        m.skip();
    }
  return a;
}

NodeProto read_node(pbf_reader m) {
  NodeProto n;
  while (m.next()) switch (m.tag()) {
      case 1:
        n.inputs.push_back(view(m));
        break;
      case 2:
        n.outputs.push_back(view(m));
        break;
      case 3:
        n.name = view(m);
        break;
      case 4:
        n.op = view(m);
        break;
      case 5:
        n.attributes.push_back(read_attribute(m.get_message()));
        break;
      case 7:
        n.domain = view(m);
        break;
      case 8:
        n.overload = view(m);
        break;
      default:
        m.skip();
    }
  return n;
}

GraphProto read_graph(pbf_reader m) {
  Depth guard(depth);
  GraphProto g;
  while (m.next()) switch (m.tag()) {
      case 1:
        g.nodes.push_back(read_node(m.get_message()));
        break;
      case 2:
        g.name = view(m);
        break;
      case 5:
        g.initializers.push_back(read_tensor(m.get_message()));
        break;
      case 11:
        g.inputs.push_back(read_value(m.get_message()));
        break;
      case 12:
        g.outputs.push_back(read_value(m.get_message()));
        break;
      case 13:
        g.values.push_back(read_value(m.get_message()));
        break;
      case 15:
        g.sparse_initializers.push_back(read_sparse(m.get_message()));
        break;
      default:
        m.skip();
    }
  return g;
}

void read_opset(pbf_reader m, Opsets& opsets) {
  std::string domain;
  int64_t version = 0;
  while (m.next()) switch (m.tag()) {
      case 1:
        domain = view(m);
        break;
      case 2:
        version = m.get_int64();
        break;
      default:
        m.skip();
    }
  opsets[domain == "ai.onnx" ? "" : domain] = version;
}

FunctionProto read_function(pbf_reader m) {
  FunctionProto f;
  while (m.next()) switch (m.tag()) {
      case 1:
        f.name = view(m);
        break;
      case 4:
        f.inputs.push_back(view(m));
        break;
      case 5:
        f.outputs.push_back(view(m));
        break;
      case 6:
        f.attributes.push_back(view(m));
        break;
      case 7:
        f.nodes.push_back(read_node(m.get_message()));
        break;
      case 9:
        read_opset(m.get_message(), f.opsets);
        break;
      case 10:
        f.domain = view(m);
        break;
      case 11:
        f.defaults.push_back(read_attribute(m.get_message()));
        break;
      case 13:
        f.overload = view(m);
        break;
      default:
        m.skip();
    }
  return f;
}

}  // namespace

ModelProto read_model_proto(std::string_view bytes) {
  pbf_reader m(bytes.data(), bytes.size());
  ModelProto model;
  while (m.next()) switch (m.tag()) {
      case 1:
        model.ir_version = m.get_int64();
        break;
      case 2:
        model.producer = view(m);
        break;
      case 7:
        model.graph = read_graph(m.get_message());
        model.has_graph = true;
        break;
      case 8:
        read_opset(m.get_message(), model.opsets);
        break;
      case 25:
        model.functions.push_back(read_function(m.get_message()));
        break;
      default:
        m.skip();
    }
  return model;
}

TensorProto read_tensor_proto(std::string_view bytes) {
  return read_tensor(pbf_reader(bytes.data(), bytes.size()));
}
TypeProto read_type_proto(std::string_view bytes) {
  return read_type(pbf_reader(bytes.data(), bytes.size()));
}

}  // namespace hologram::onnx
