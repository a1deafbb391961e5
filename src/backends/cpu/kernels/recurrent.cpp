// RNN, GRU and LSTM.
//
// What the inputs contribute is one product for all steps; each step then adds the product of the
// state and runs the cell an element at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/recurrent_activation.h"

namespace hologram::kernels {
namespace {

enum class Cell { rnn, gru, lstm };
using Kind = RecurrentActivation::Kind;

constexpr int64_t gates_of(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::gru ? 3 : 4; }
constexpr size_t activations_of(Cell cell) {
  return cell == Cell::rnn ? 1 : cell == Cell::gru ? 2 : 3;
}

struct Layer {
  int64_t steps, batch, inputs, hidden, directions, gates;
  bool batch_first, reverse;  // reverse: the first direction goes backwards

  int64_t x_row(int64_t step, int64_t sample) const {
    return batch_first ? sample * steps + step : step * batch + sample;
  }
  int64_t state_row(int64_t direction, int64_t sample) const {
    return batch_first ? sample * directions + direction : direction * batch + sample;
  }
  int64_t y_row(int64_t step, int64_t direction, int64_t sample) const {
    return batch_first ? (sample * steps + step) * directions + direction
                       : (step * directions + direction) * batch + sample;
  }
  Dims state_dims() const {
    return batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  }
};

Status expect(const KernelContext& c, size_t input, std::string_view name, const Dims& dims) {
  if (!c.has_input(input) || c.input(input).dims == dims) return {};
  return fail(ErrorCode::shape_mismatch, "{} is {}; {} expected", name,
              c.input(input).dims.to_string(), dims.to_string());
}

Result<Layer> layer_of(const KernelContext& c, Cell cell) {
  const Dims &x = c.input(0).dims, &r = c.input(2).dims;
  if (x.rank() != 3 || r.rank() != 3)
    return fail(ErrorCode::shape_mismatch, "X {} and R {}; rank 3 expected", x.to_string(),
                r.to_string());
  const std::string_view direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return fail(ErrorCode::invalid_argument,
                "direction '{}'; supported: forward, reverse, bidirectional", direction);
  Layer l{};
  l.batch_first = c.integer("layout") != 0;
  l.reverse = direction == "reverse";
  l.directions = direction == "bidirectional" ? 2 : 1;
  l.steps = x[l.batch_first ? 1 : 0];
  l.batch = x[l.batch_first ? 0 : 1];
  l.inputs = x[2];
  l.hidden = r[2];
  l.gates = gates_of(cell);
  if (c.integer("hidden_size", l.hidden) != l.hidden)
    return fail(ErrorCode::shape_mismatch, "hidden_size {} and R {}", c.integer("hidden_size"),
                r.to_string());
  HOLOGRAM_CHECK(expect(c, 1, "W", {l.directions, l.gates * l.hidden, l.inputs}));
  HOLOGRAM_CHECK(expect(c, 2, "R", {l.directions, l.gates * l.hidden, l.hidden}));
  HOLOGRAM_CHECK(expect(c, 3, "B", {l.directions, 2 * l.gates * l.hidden}));
  HOLOGRAM_CHECK(expect(c, 4, "sequence_lens", {l.batch}));
  HOLOGRAM_CHECK(expect(c, 5, "initial_h", l.state_dims()));
  HOLOGRAM_CHECK(expect(c, 6, "initial_c", l.state_dims()));
  HOLOGRAM_CHECK(expect(c, 7, "P", {l.directions, 3 * l.hidden}));
  if (c.has_input(4))
    for (const int32_t length : c.input(4).span<int32_t>())
      if (length < 0 || length > l.steps)
        return fail(ErrorCode::out_of_range, "a sequence of length {} of {}", length, l.steps);
  return l;
}

// One direction: weights, and the memory of a step.
template <typename T>
struct Direction {
  const Layer& layer;
  const T *w, *r, *b, *peepholes;  // b and peepholes may be absent
  const RecurrentActivation* f;
  T clip;
  bool linear_before_reset, input_forget;
  bool quantise_state;  // round a state to 8 bits before it is multiplied

  T clipped(T x) const { return std::clamp(x, -clip, clip); }
  // The two biases of a gate's element.
  T input_bias(int64_t i) const { return b ? b[i] : T(0); }
  T state_bias(int64_t i) const { return b ? b[layer.gates * layer.hidden + i] : T(0); }

  // h = f(x + hr + biases)
  void rnn(const T* x, const T* hr, T* h) const {
    for (int64_t i = 0; i < layer.hidden; ++i)
      h[i] = f[0](clipped(x[i] + hr[i] + input_bias(i) + state_bias(i)));
  }

  // The update and reset gates, into `z`; `reset` becomes what the hidden gate's weights multiply.
  void gru_gates(const T* x, const T* hr, const T* h, T* z, T* reset) const {
    const int64_t n = layer.hidden;
    for (int64_t i = 0; i < n; ++i) {
      z[i] = f[0](clipped(x[i] + hr[i] + input_bias(i) + state_bias(i)));
      const T gate = f[0](clipped(x[n + i] + hr[n + i] + input_bias(n + i) + state_bias(n + i)));
      reset[i] = linear_before_reset ? gate * (hr[2 * n + i] + state_bias(2 * n + i)) : gate * h[i];
    }
  }
  // `product`: what the state contributes to the hidden gate.
  void gru_state(const T* x, const T* product, const T* z, T* h) const {
    const int64_t n = layer.hidden;
    for (int64_t i = 0; i < n; ++i) {
      const T bias = linear_before_reset ? T(0) : state_bias(2 * n + i);
      const T next = f[1](clipped(x[2 * n + i] + product[i] + input_bias(2 * n + i) + bias));
      h[i] = (1 - z[i]) * next + z[i] * h[i];
    }
  }

  void lstm(const T* x, const T* hr, T* h, T* cell) const {
    const int64_t n = layer.hidden;
    auto sum = [&](int64_t gate, int64_t i) {
      const int64_t at = gate * n + i;
      return x[at] + hr[at] + input_bias(at) + state_bias(at);
    };
    auto peep = [&](int64_t gate, int64_t i) { return peepholes ? peepholes[gate * n + i] : T(0); };
    for (int64_t i = 0; i < n; ++i) {
      const T in = f[0](clipped(sum(0, i) + peep(0, i) * cell[i]));
      const T forget = input_forget ? 1 - in : f[0](clipped(sum(2, i) + peep(2, i) * cell[i]));
      cell[i] = forget * cell[i] + in * f[1](clipped(sum(3, i)));
      const T out = f[0](clipped(sum(1, i) + peep(1, i) * cell[i]));
      h[i] = out * f[2](clipped(cell[i]));
    }
  }
};

// What is left of numbers that have been 8 bits: the range is theirs, with 0 in it, as in
// DynamicQuantizeLinear.
template <typename T>
void round_to_bytes(std::span<const T> x, std::span<T> y) {
  T low = 0, high = 0;
  for (const T value : x) low = std::min(low, value), high = std::max(high, value);
  const T scale = high > low ? (high - low) / 255 : T(1);
  const T zero = std::clamp(std::nearbyint(-low / scale), T(0), T(255));
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = (std::clamp(std::nearbyint(x[i] / scale) + zero, T(0), T(255)) - zero) * scale;
}

// y = x * weights', for rows of x.
template <typename T>
Status multiply(KernelContext& c, GemmScratch& scratch, const T* x, int64_t rows, int64_t size,
                const T* weights, int64_t columns, T* y) {
  return gemm<T>({.m = rows,
                  .n = columns,
                  .k = size,
                  .a = x,
                  .a_row = size,
                  .a_column = 1,
                  .b = weights,
                  .b_row = 1,
                  .b_column = size,
                  .c = y,
                  .c_row = columns},
                 c, scratch);
}

template <typename T, Cell cell>
Status run_direction(KernelContext& c, const Layer& l, int64_t direction, const Direction<T>& d,
                     T* y, T* last_h, T* last_c) {
  const int64_t n = l.hidden, width = l.gates * n;
  HOLOGRAM_TRY(auto from_x, c.scratch<T>(l.steps * l.batch * width));
  HOLOGRAM_TRY(auto from_h, c.scratch<T>(l.batch * width));
  HOLOGRAM_TRY(auto h, c.scratch<T>(l.batch * n));
  HOLOGRAM_TRY(auto state, c.scratch<T>(l.batch * n));
  HOLOGRAM_TRY(auto z, c.scratch<T>(l.batch * n));
  HOLOGRAM_TRY(auto reset, c.scratch<T>(l.batch * n));
  HOLOGRAM_TRY(auto product, c.scratch<T>(l.batch * n));
  GemmScratch scratch;
  for (int64_t sample = 0; sample < l.batch; ++sample) {
    const int64_t row = l.state_row(direction, sample) * n;
    for (auto [input, memory] : {std::pair{size_t{5}, h.data()}, {size_t{6}, state.data()}})
      if (c.has_input(input))
        std::copy_n(c.input(input).template as<T>() + row, n, memory + sample * n);
      else
        std::fill_n(memory + sample * n, n, T(0));
  }
  HOLOGRAM_CHECK(multiply(c, scratch, c.input(0).as<T>(), l.steps * l.batch, l.inputs, d.w, width,
                          from_x.data()));
  const bool backwards = l.reverse || direction == 1;
  auto length = [&](int64_t sample) {
    return c.has_input(4) ? static_cast<int64_t>(c.input(4).as<int32_t>()[sample]) : l.steps;
  };
  for (int64_t t = 0; t < l.steps; ++t) {
    if (d.quantise_state) round_to_bytes<T>(h, product);
    HOLOGRAM_CHECK(multiply(c, scratch, (d.quantise_state ? product : h).data(), l.batch, n, d.r,
                            width, from_h.data()));
    // The row of from_x for this step of a sample that is still running.
    auto x_of = [&](int64_t sample) {
      return from_x.data() + l.x_row(backwards ? length(sample) - 1 - t : t, sample) * width;
    };
    if constexpr (cell == Cell::gru) {
      for (int64_t s = 0; s < l.batch; ++s)
        if (t < length(s))
          d.gru_gates(x_of(s), from_h.data() + s * width, h.data() + s * n, z.data() + s * n,
                      reset.data() + s * n);
        else
          std::fill_n(reset.data() + s * n, n, T(0));
      if (!d.linear_before_reset)
        HOLOGRAM_CHECK(
            multiply(c, scratch, reset.data(), l.batch, n, d.r + 2 * n * n, n, product.data()));
    }
    for (int64_t s = 0; s < l.batch; ++s) {
      if (t >= length(s)) {
        if (y) std::fill_n(y + l.y_row(t, direction, s) * n, n, T(0));
        continue;
      }
      T* own = h.data() + s * n;
      if constexpr (cell == Cell::rnn)
        d.rnn(x_of(s), from_h.data() + s * width, own);
      else if constexpr (cell == Cell::gru)
        d.gru_state(x_of(s), (d.linear_before_reset ? reset : product).data() + s * n,
                    z.data() + s * n, own);
      else
        d.lstm(x_of(s), from_h.data() + s * width, own, state.data() + s * n);
      const int64_t step = backwards ? length(s) - 1 - t : t;
      if (y) std::copy_n(own, n, y + l.y_row(step, direction, s) * n);
    }
  }
  for (int64_t s = 0; s < l.batch; ++s) {
    const int64_t row = l.state_row(direction, s) * n;
    if (last_h) std::copy_n(h.data() + s * n, n, last_h + row);
    if (last_c) std::copy_n(state.data() + s * n, n, last_c + row);
  }
  return {};
}

template <Cell cell>
Status recurrent(KernelContext& c) {
  HOLOGRAM_TRY(const Layer l, layer_of(c, cell));
  constexpr Kind kRnn[] = {Kind::tanh}, kGru[] = {Kind::sigmoid, Kind::tanh},
                 kLstm[] = {Kind::sigmoid, Kind::tanh, Kind::tanh};
  RecurrentActivation activations[6];
  HOLOGRAM_CHECK(read_activations(c, activations_of(cell), l.directions,
                                  cell == Cell::rnn   ? kRnn
                                  : cell == Cell::gru ? kGru
                                                      : kLstm,
                                  activations));
  return dispatch_float(c.input(0).dtype, [&]<typename T>() -> Status {
    T* outputs[3] = {};
    for (size_t i = 0; i < (cell == Cell::lstm ? 3 : 2); ++i) {
      if (!c.wants_output(i)) continue;
      const Dims all = l.batch_first ? Dims{l.batch, l.steps, l.directions, l.hidden}
                                     : Dims{l.steps, l.directions, l.batch, l.hidden};
      HOLOGRAM_TRY(Tensor out, c.output(i, i == 0 ? all : l.state_dims()));
      outputs[i] = out.as<T>();
    }
    if (l.batch == 0 || l.hidden == 0) return {};
    const int64_t width = l.gates * l.hidden;
    const T clip = static_cast<T>(c.number("clip", std::numeric_limits<double>::infinity()));
    if (!(clip >= 0)) return fail(ErrorCode::invalid_argument, "clip {}", clip);
    for (int64_t i = 0; i < l.directions; ++i) {
      const Direction<T> d{
          .layer = l,
          .w = c.input(1).as<T>() + i * width * l.inputs,
          .r = c.input(2).as<T>() + i * width * l.hidden,
          .b = c.has_input(3) ? c.input(3).as<T>() + i * 2 * width : nullptr,
          .peepholes = c.has_input(7) ? c.input(7).as<T>() + i * 3 * l.hidden : nullptr,
          .f = activations + i * activations_of(cell),
          .clip = clip,
          .linear_before_reset = c.integer("linear_before_reset") != 0,
          .input_forget = c.integer("input_forget") != 0,
          .quantise_state = c.integer("quantise_state") != 0};
      HOLOGRAM_CHECK((run_direction<T, cell>(c, l, i, d, outputs[0], outputs[1], outputs[2])));
    }
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"GRU", recurrent<Cell::gru>, true},
    {"LSTM", recurrent<Cell::lstm>, true},
    {"RNN", recurrent<Cell::rnn>, true},
};

}  // namespace

std::span<const Kernel> recurrent_kernels() { return kKernels; }

}  // namespace hologram::kernels
