// The errors that a block is left with after some of its layers: measured on the encoder's side,
// and equal to what the decoder's values would give.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "holotensor/refine/analysis.h"

namespace hologram::holotensor::refine {
namespace {

// One group, or the 256 codes of a page as if they were one.
class Measured {
 public:
  Measured(const TensorModel& model, unsigned scale_class, const std::byte* source, unsigned count,
           bool marks_zeros)
      : model_(model), class_(scale_class), window_(model.window(scale_class)) {
    const NumberFormat& format = model.format;
    load_carriers(format, source, count, values_);
    split_group(format, window_, values_, split_);
    for (unsigned w = 0; w < kGroupWords; ++w) {
      has_exceptions_ |= split_.exception[w] != 0;
      if (!marks_zeros) continue;
      for (uint64_t rest = split_.zero[w]; rest != 0; rest &= rest - 1)
        split_.units[w * 64 + static_cast<unsigned>(std::countr_zero(rest))] = NAN;
    }
    // Past the end, and where the source is not finite, nothing is measured.
    std::fill(split_.units + count, split_.units + kGroup, NAN);
    if (format.integer || has_exceptions_)
      for (unsigned i = 0; i < count; ++i)
        values_[i] = std::isfinite(values_[i]) ? values_[i] - format.offset : 0.0f;
  }

  // `counts`: how often each element occurs; null: once.
  void add_to(std::vector<ErrorSum>& sums, std::span<const unsigned> layers,
              const uint32_t* counts) const {
    const GroupError whole = squares(values_, counts);
    for (size_t l = 0; l < layers.size(); ++l) {
      const GroupError error = error_after(layers[l], whole, counts);
      sums[l].squared_value += whole.squares;
      sums[l].squared_error += error.squares;
      sums[l].max_error = std::max(sums[l].max_error, error.largest);
    }
  }

 private:
  static GroupError squares(const float* values, const uint32_t* counts) {
    return counts ? weighted_squares(values, counts) : group_squares(values);
  }

  GroupError error_after(unsigned layers, const GroupError& whole, const uint32_t* counts) const {
    if (layers == model_.layers()) return {};
    const unsigned depth = model_.depth(class_, layers);
    if (depth > 0) {
      const float* centroids = model_.centroids(depth, window_.planes);
      return counts ? weighted_error(model_.format, window_, depth, centroids, split_, counts)
                    : approximation_error(model_.format, window_, depth, centroids, split_);
    }
    if (layers == 0 || !has_exceptions_) return whole;
    float rest[kGroup];  // only the exceptions are known
    for (unsigned i = 0; i < kGroup; ++i)
      rest[i] = split_.exception[i / 64] >> (i % 64) & 1 ? 0.0f : values_[i];
    return squares(rest, counts);
  }

  const TensorModel& model_;
  unsigned class_;
  Window window_;
  bool has_exceptions_ = false;
  float values_[kGroup];
  GroupSplit split_;
};

// How often each code of a type of at most two bytes occurs, by scale class. An element's error
// follows from its code and its class, so counting and then measuring each code once costs a
// fraction of measuring each element.
class CodeCounts {
 public:
  static constexpr unsigned kMostClasses = 8;
  static constexpr unsigned kFewestElements = 32768;

  static bool suits(const NumberFormat& format, std::span<const uint8_t> classes,
                    unsigned elements) {
    if (format.bytes > 2 || elements < kFewestElements) return false;
    uint64_t present = 0;
    for (const uint8_t c : classes) present |= uint64_t{1} << c;
    return std::popcount(present) <= static_cast<int>(kMostClasses);
  }

  CodeCounts(unsigned bytes) : codes_(bytes == 1 ? 256 : 65536) { table_of_.fill(kNone); }

  void add(unsigned scale_class, const std::byte* source, unsigned count, bool marks_zeros) {
    uint32_t* counts = table(scale_class);
    const uint32_t zeros = counts[0];
    if (codes_ == 256) {
      // Four tables: one would wait for its own last increment whenever a code repeats.
      uint32_t parts[4][256] = {};
      unsigned i = 0;
      for (; i + 4 <= count; i += 4)
        for (unsigned k = 0; k < 4; ++k) ++parts[k][static_cast<uint8_t>(source[i + k])];
      for (; i < count; ++i) ++parts[0][static_cast<uint8_t>(source[i])];
      for (unsigned c = 0; c < 256; ++c)
        counts[c] += parts[0][c] + parts[1][c] + parts[2][c] + parts[3][c];
    } else {
      for (unsigned i = 0; i < count; ++i) {
        uint16_t code;
        std::memcpy(&code, source + i * 2, 2);
        ++counts[code];
      }
    }
    if (marks_zeros) counts[0] = zeros;  // +0 is exact from the first layer on, and worth nothing
  }

  void measure(const TensorModel& model, std::span<const unsigned> layers,
               std::vector<ErrorSum>& sums) const {
    std::byte source[kGroup * 2];
    for (unsigned c = 0; c < table_of_.size(); ++c) {
      if (table_of_[c] == kNone) continue;
      const uint32_t* counts = counts_.data() + size_t{table_of_[c]} * codes_;
      for (unsigned page = 0; page < codes_; page += kGroup) {
        uint32_t any = 0;
        for (unsigned i = 0; i < kGroup; ++i) any |= counts[page + i];
        if (any == 0) continue;
        for (unsigned i = 0; i < kGroup; ++i) {
          const auto code = static_cast<uint16_t>(page + i);
          std::memcpy(source + i * model.format.bytes, &code, model.format.bytes);
        }
        Measured(model, c, source, kGroup, false).add_to(sums, layers, counts + page);
      }
    }
  }

 private:
  static constexpr uint8_t kNone = 255;

  uint32_t* table(unsigned scale_class) {
    uint8_t& place = table_of_[scale_class];
    if (place == kNone) {
      place = static_cast<uint8_t>(counts_.size() / codes_);
      counts_.resize(counts_.size() + codes_);
    }
    return counts_.data() + size_t{place} * codes_;
  }

  unsigned codes_;
  std::array<uint8_t, 64> table_of_;
  std::vector<uint32_t> counts_;
};

}  // namespace

std::vector<ErrorSum> measure_block(const Analysis& analysis, size_t block,
                                    std::span<const std::byte> source, bool marks_zeros,
                                    std::span<const unsigned> layers) {
  const TensorModel& model = analysis.model;
  const auto classes = analysis.classes_of(block);
  const unsigned elements = analysis.elements_of(block);
  std::vector<ErrorSum> sums(layers.size());
  const bool by_code = CodeCounts::suits(model.format, classes, elements);
  CodeCounts counts(by_code ? model.format.bytes : 1);
  for (unsigned g = 0, next; g < classes.size(); g = next) {
    next = g + 1;
    if (classes[g] == kEmptyClass) continue;  // zeros, by any measure
    while (by_code && next < classes.size() && classes[next] == classes[g]) ++next;
    const std::byte* from = source.data() + size_t{g} * kGroup * model.format.bytes;
    const unsigned count = std::min(next * kGroup, elements) - g * kGroup;
    if (by_code)
      counts.add(classes[g], from, count, marks_zeros);
    else
      Measured(model, classes[g], from, count, marks_zeros).add_to(sums, layers, nullptr);
  }
  if (by_code) counts.measure(model, layers, sums);
  return sums;
}

}  // namespace hologram::holotensor::refine
