// hologram.GatherPacked: rows of a table that is stored as the matrix of a product (gemm.h), whose
// columns they are. Embeddings that a network ends with again are in an archive once.
#include <algorithm>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/kernels/fused.h"
#include "backends/cpu/kernels/indexing.h"
#include "support/aligned.h"

namespace hologram::kernels {

namespace dense = backends::dense;

Status gather_packed(KernelContext& c) {
  const Tensor &table = c.input(0), &indices = c.input(1);
  const int64_t k = c.integer("k"), n = c.integer("n");
  if (k < 0 || n < 0 || k > kMostOfAMatrix || n > kMostOfAMatrix ||
      table.bytes() != dense::packed_b_bytes(static_cast<size_t>(k), static_cast<size_t>(n)))
    return fail(ErrorCode::shape_mismatch, "a table of {} bytes for {} rows of {}", table.bytes(),
                n, k);
  if (indices.dims.rank() == kMaxRank)
    return fail(ErrorCode::unsupported, "a result of more than {} dimensions", kMaxRank);
  Dims dims = indices.dims;
  dims.push_back(k);
  HOLOGRAM_TRY(const auto chosen, read_indices(c, indices, n));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  if (out.count() == 0) return {};
  constexpr int64_t kPiece = 4 * 1024, kPanel = dense::kPanelColumns;
  const auto columns = static_cast<int64_t>(align_up(static_cast<uint64_t>(n), dense::kChunk));
  c.threads().parallel_for(chosen.size(), static_cast<size_t>(std::max<int64_t>(1, kPiece / k)),
                           [&](size_t begin, size_t end) {
                             for (size_t i = begin; i < end; ++i) {
                               const int64_t column = chosen[i], panel = column / kPanel * kPanel;
                               const int64_t width = std::min(kPanel, columns - panel);
                               const float* from = table.as<float>() + panel * k + (column - panel);
                               float* to = out.as<float>() + static_cast<int64_t>(i) * k;
                               for (int64_t at = 0; at < k; ++at) to[at] = from[at * width];
                             }
                           });
  return {};
}

}  // namespace hologram::kernels
