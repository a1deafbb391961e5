#include "backends/cpu/dense/pool.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/pool.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/bf16_values-inl.h"
#include "backends/cpu/dense/image_rows.h"
#include "backends/cpu/dense/means.h"
#include "backends/cpu/dense/reduce-inl.h"

#ifndef HOLOGRAM_DENSE_POOL_ONCE_
#define HOLOGRAM_DENSE_POOL_ONCE_
namespace hologram::backends::dense {
// The part of a window that lies inside: kernel positions first..end, the first at input `at`; and
// the number of positions inside the padded input.
struct Window {
  size_t first, end, at, padded;
};
inline Window window(size_t out, size_t in, size_t kernel, size_t stride, size_t dilation,
                     size_t pad, size_t pad_after) {
  const ptrdiff_t start = static_cast<ptrdiff_t>(out * stride) - static_cast<ptrdiff_t>(pad);
  // Kernel positions before input `place`. Not counted one by one: a plan may name any kernel.
  const auto before = [&](size_t place) -> size_t {
    const ptrdiff_t distance = static_cast<ptrdiff_t>(place) - start;
    return distance <= 0 ? 0 : std::min(kernel, static_cast<size_t>(distance - 1) / dilation + 1);
  };
  const size_t first = before(0), end = before(in), padded = before(in + pad_after);
  if (first >= end) return {kernel, kernel, 0, padded};
  const ptrdiff_t at = start + static_cast<ptrdiff_t>(first * dilation);
  return {first, end, static_cast<size_t>(at), padded};
}
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

float divisor(const Pool& p, const Window& rows, const Window& columns) {
  const size_t cells = p.include_pad ? rows.padded * columns.padded
                                     : (rows.end - rows.first) * (columns.end - columns.first);
  return cells == 0 ? 1.0f : static_cast<float>(cells);
}

Window row_window(const Pool& p, size_t y) {
  return window(y, p.in_height, p.kernel_height, p.stride_height, p.dilation_height, p.pad_top,
                p.pad_bottom);
}
Window column_window(const Pool& p, size_t x) {
  const size_t start = x * p.stride_width;
  if (start >= p.pad_left &&
      start - p.pad_left + (p.kernel_width - 1) * p.dilation_width < p.in_width)
    return {0, p.kernel_width, start - p.pad_left, p.kernel_width};
  return window(x, p.in_width, p.kernel_width, p.stride_width, p.dilation_width, p.pad_left,
                p.pad_right);
}

// One output row of a channel block.
template <class Op, typename T>
void blocked_row(const Pool& p, size_t y, const T* in, T* out) {
  const D d;
  const Window rows = row_window(p, y);
  for (size_t x = 0; x < p.out_width; ++x) {
    const Window columns = column_window(p, x);
    const V scale = hn::Set(d, divisor(p, rows, columns));
    for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      V value = hn::Set(d, Op::kNeutral);
      for (size_t ky = rows.first; ky < rows.end; ++ky) {
        const size_t row = rows.at + (ky - rows.first) * p.dilation_height;
        const T* cell = in + (row * p.in_width + columns.at) * kChannelBlock + lane;
        for (size_t kx = columns.first; kx < columns.end; ++kx) {
          value = Op::combine(value, load_value(d, cell));
          cell += p.dilation_width * kChannelBlock;
        }
      }
      if (p.kind == PoolKind::average) value = hn::Div(value, scale);
      store_value(d, value, out + x * kChannelBlock + lane);
    }
  }
}

// Values as maxima are taken of them, and back.
struct FloatKeys {
  static constexpr float kLeast = MaxOf::kNeutral;
  template <class V>
  static HWY_INLINE V of(V values) {
    return values;
  }
  template <class V>
  static HWY_INLINE V larger(V a, V b) {
    return MaxOf::combine(a, b);
  }
  template <class V>
  static HWY_INLINE V values(V keys) {
    return keys;
  }
};
// Of bf16: integers in the same order, all of a vector's width at once. -infinity is 0, and NaNs of
// either sign are above everything.
struct HalfKeys {
  static constexpr uint16_t kLeast = 0;
  template <class V>
  static HWY_INLINE V of(V values) {
    return hn::Sub(turned(values), hn::Set(hn::DFromV<V>(), kInfinity));
  }
  template <class V>
  static HWY_INLINE V larger(V a, V b) {
    return hn::Max(a, b);
  }
  template <class V>
  static HWY_INLINE V values(V keys) {
    return turned(hn::Add(keys, hn::Set(hn::DFromV<V>(), kInfinity)));
  }

 private:
  static constexpr uint16_t kInfinity = 0x807f;  // -infinity, turned
  // Negative values the other way round.
  template <class V>
  static HWY_INLINE V turned(V bits) {
    const hn::DFromV<V> d;
    const hn::RebindToSigned<decltype(d)> signs;
    const V sign = hn::BitCast(d, hn::ShiftRight<15>(hn::BitCast(signs, bits)));
    return hn::Xor(bits, hn::And(sign, hn::Set(d, 0x7fff)));
  }
};

// The same of maxima: a strip of columns is first combined over the window's rows, where neighbours
// share them, then each output over its columns.
template <class Keys, typename T>
void blocked_max_row(const Pool& p, size_t y, const T* in, T* out) {
  constexpr size_t kStrip = 256;  // columns
  const size_t reach = (p.kernel_width - 1) * p.dilation_width + 1;
  if (reach > kStrip) return blocked_row<MaxOf, T>(p, y, in, out);
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, kChannelBlock> pixel;
  const size_t lanes = hn::Lanes(d), some = hn::Lanes(pixel);
  HWY_ALIGN T strip[kStrip * kChannelBlock];
  const Window rows = row_window(p, y);
  const size_t height = rows.end - rows.first;
  const size_t step = p.dilation_height * p.in_width * kChannelBlock;
  const T* top = in + rows.at * p.in_width * kChannelBlock;
  const size_t outputs = (kStrip - reach) / p.stride_width + 1;  // of one strip
  for (size_t x = 0; x < p.out_width; x += outputs) {
    const size_t count = std::min(outputs, p.out_width - x);
    // The strip begins at column `start` of the input; what lies outside is below everything.
    const ptrdiff_t start =
        static_cast<ptrdiff_t>(x * p.stride_width) - static_cast<ptrdiff_t>(p.pad_left);
    const size_t length = (count - 1) * p.stride_width + reach;
    const auto inside = [&](ptrdiff_t column) {
      return static_cast<size_t>(
          std::clamp<ptrdiff_t>(column - start, 0, static_cast<ptrdiff_t>(length)));
    };
    const size_t first = height == 0 ? length : inside(0);
    const size_t past = std::max(first, inside(static_cast<ptrdiff_t>(p.in_width)));
    std::fill_n(strip, first * kChannelBlock, Keys::kLeast);
    std::fill(strip + past * kChannelBlock, strip + length * kChannelBlock, Keys::kLeast);
    const auto down = [&](auto tag, size_t i) {
      const T* cell = top + start * static_cast<ptrdiff_t>(kChannelBlock) + i;
      auto most = Keys::of(hn::LoadU(tag, cell));
      for (size_t k = 1; k < height; ++k)
        most = Keys::larger(most, Keys::of(hn::LoadU(tag, cell + k * step)));
      hn::StoreU(most, tag, strip + i);
    };
    size_t i = first * kChannelBlock;
    for (; i + lanes <= past * kChannelBlock; i += lanes) down(d, i);
    for (; i < past * kChannelBlock; i += some) down(pixel, i);
    for (size_t o = 0; o < count; ++o)
      for (size_t lane = 0; lane < kChannelBlock; lane += some) {
        const T* cell = strip + o * p.stride_width * kChannelBlock + lane;
        auto most = hn::LoadU(pixel, cell);
        for (size_t k = 1; k < p.kernel_width; ++k)
          most = Keys::larger(most, hn::LoadU(pixel, cell + k * p.dilation_width * kChannelBlock));
        hn::StoreU(Keys::values(most), pixel, out + (x + o) * kChannelBlock + lane);
      }
  }
}

// One output row of a channel whose window is wider than a strip.
template <class Op>
void wide_row(const Pool& p, size_t y, const float* in, float* out) {
  const Window rows = row_window(p, y);
  for (size_t x = 0; x < p.out_width; ++x) {
    const Window columns = column_window(p, x);
    float value = Op::kNeutral;
    for (size_t kx = columns.first; kx < columns.end; ++kx) {
      const float* cell =
          in + rows.at * p.in_width + columns.at + (kx - columns.first) * p.dilation_width;
      float down = Op::kNeutral;
      for (size_t ky = rows.first; ky < rows.end; ++ky, cell += p.dilation_height * p.in_width)
        down = Op::combine_scalar(down, *cell);
      value = Op::combine_scalar(value, down);
    }
    out[x] = p.kind == PoolKind::average ? value / divisor(p, rows, columns) : value;
  }
}

// One output row of a channel in nchw: a strip of columns is first combined over the window's rows,
// then each output over its columns. Both with vectors where the stride is 1 or 2.
template <class Op>
void plain_row(const Pool& p, size_t y, const float* in, float* out) {
  const D d;
  constexpr size_t kStrip = 1024, kSlack = 2 * kLanes;
  HWY_ALIGN float strip[kStrip + kSlack], even[kStrip / 2 + kSlack], odd[kStrip / 2 + kSlack];
  const Window rows = row_window(p, y);
  const V neutral = hn::Set(d, Op::kNeutral);
  const size_t reach = (p.kernel_width - 1) * p.dilation_width + 1, stride = p.stride_width;
  if (reach > kStrip) return wide_row<Op>(p, y, in, out);
  const size_t outputs = (kStrip - reach) / stride + 1;  // of one strip
  for (size_t x = 0; x < p.out_width; x += outputs) {
    const size_t count = std::min(outputs, p.out_width - x);
    // strip[i] is the column start + i of the input; what lies outside is neutral.
    const ptrdiff_t start = static_cast<ptrdiff_t>(x * stride) - static_cast<ptrdiff_t>(p.pad_left);
    const size_t length = (count - 1) * stride + reach;
    const auto inside = [&](ptrdiff_t column) {
      return static_cast<size_t>(
          std::clamp<ptrdiff_t>(column - start, 0, static_cast<ptrdiff_t>(length)));
    };
    const size_t first = inside(0), past = inside(static_cast<ptrdiff_t>(p.in_width));
    std::fill_n(strip, first, Op::kNeutral);
    const float* top = in + rows.at * p.in_width;
    const size_t step = p.dilation_height * p.in_width, height = rows.end - rows.first;
    size_t i = first;
    for (; i + kLanes <= past; i += kLanes) {
      V value = neutral;
      const float* cell = top + (start + static_cast<ptrdiff_t>(i));
      for (size_t k = 0; k < height; ++k, cell += step)
        value = Op::combine(value, hn::LoadU(d, cell));
      hn::StoreU(value, d, strip + i);
    }
    for (; i < past; ++i) {
      float value = Op::kNeutral;
      const float* cell = top + (start + static_cast<ptrdiff_t>(i));
      for (size_t k = 0; k < height; ++k, cell += step) value = Op::combine_scalar(value, *cell);
      strip[i] = value;
    }
    std::fill(strip + past, strip + length + kSlack, Op::kNeutral);

    if (stride == 2) {
      for (size_t j = 0; j < length; j += 2 * kLanes) {
        const V low = hn::LoadU(d, strip + j), high = hn::LoadU(d, strip + j + kLanes);
        hn::StoreU(hn::ConcatEven(d, high, low), d, even + j / 2);
        hn::StoreU(hn::ConcatOdd(d, high, low), d, odd + j / 2);
      }
    }
    HWY_ALIGN float values[kLanes];
    for (size_t j = 0; j < count; j += kLanes) {
      const size_t some = std::min(kLanes, count - j);
      if (stride <= 2 && some == kLanes) {
        V value = neutral;
        for (size_t k = 0; k < p.kernel_width; ++k) {
          const size_t at = k * p.dilation_width;
          const float* cell = stride == 1 ? strip + j + at : (at % 2 ? odd : even) + j + at / 2;
          value = Op::combine(value, hn::LoadU(d, cell));
        }
        hn::Store(value, d, values);
      } else {
        for (size_t o = 0; o < some; ++o) {
          float value = Op::kNeutral;
          for (size_t k = 0; k < p.kernel_width; ++k)
            value = Op::combine_scalar(value, strip[(j + o) * stride + k * p.dilation_width]);
          values[o] = value;
        }
      }
      if (p.kind == PoolKind::average)
        for (size_t o = 0; o < some; ++o)
          values[o] /= divisor(p, rows, column_window(p, x + j + o));
      std::copy_n(values, some, out + x + j);
    }
  }
}

void pool_row(const Pool& p, size_t y, const float* in, float* out) {
  if (p.layout == Layout::blocked)
    (p.kind == PoolKind::max ? blocked_max_row<FloatKeys, float>
                             : blocked_row<SumOf, float>)(p, y, in, out);
  else
    (p.kind == PoolKind::max ? plain_row<MaxOf> : plain_row<SumOf>)(p, y, in, out);
}

void pool_row_bf16(const Pool& p, size_t y, const uint16_t* in, uint16_t* out) {
  (p.kind == PoolKind::max ? blocked_max_row<HalfKeys, uint16_t>
                           : blocked_row<SumOf, uint16_t>)(p, y, in, out);
}

void channel_mean(size_t pixels, const float* in, float* out) {
  *out = reduce_run<SumOf>(in, pixels) / static_cast<float>(pixels);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(pool_row);
HWY_EXPORT(pool_row_bf16);
HWY_EXPORT(channel_mean);

void pool(const Pool& p, ThreadPool& threads) {
  const bool blocked = p.layout == Layout::blocked;
  // Planes: channels, or channel blocks whose pixels are 16 values.
  const size_t planes = p.batch * (blocked ? channel_blocks(p.channels) : p.channels);
  const size_t pixel = blocked ? kChannelBlock : 1;
  if (planes * p.out_height * p.out_width == 0) return;
  const auto row = HWY_DYNAMIC_DISPATCH(pool_row);
  const auto row_bf16 = HWY_DYNAMIC_DISPATCH(pool_row_bf16);
  const auto body = [&](size_t plane, size_t first, size_t count) {
    const size_t from = plane * p.in_height * p.in_width * pixel;
    for (size_t y = first; y < first + count; ++y) {
      const size_t to = (plane * p.out_height + y) * p.out_width * pixel;
      if (p.x_bf16)
        row_bf16(p, y, p.x_bf16 + from, p.y_bf16 + to);
      else
        row(p, y, p.x + from, p.y + to);
    }
  };
  const size_t work =
      planes * p.out_height * p.out_width * pixel * p.kernel_height * p.kernel_width;
  for_image_rows(threads, planes, p.out_height, p.out_width, work < 131072 ? 1 : 0, body);
}

void global_average(Layout layout, size_t batch, size_t channels, size_t pixels, const float* x,
                    float* y, ThreadPool& threads) {
  if (layout == Layout::blocked)
    return block_means(
        {.planes = batch * channel_blocks(channels), .pixels = pixels, .x = x, .y_rounded = y},
        threads);
  constexpr size_t kSmallMean = 65536;  // values that one thread adds up
  const auto mean = HWY_DYNAMIC_DISPATCH(channel_mean);
  const auto body = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) mean(pixels, x + i * pixels, y + i);
  };
  threads.parallel_for(batch * channels, 16, body, Schedule::dynamic,
                       batch * channels * pixels < kSmallMean ? 1 : 0);
}

void global_average_bf16(size_t batch, size_t channels, size_t pixels, const uint16_t* x, float* y,
                         ThreadPool& threads) {
  block_means(
      {.planes = batch * channel_blocks(channels), .pixels = pixels, .x_bf16 = x, .y_rounded = y},
      threads);
}
}  // namespace hologram::backends::dense
#endif
