// FragmentSource: where the fragments of one or more encoded tensors come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holotensor/encoder.h"
#include "holotensor/source/byte_source.h"
#include "holotensor/source/cancel.h"
#include "holotensor/tensor.h"
#include "support/function_ref.h"
#include "support/result.h"

namespace hologram::holotensor {

struct FragmentRequest {
  size_t tensor = 0;  // an index into tensors()
  uint16_t fragment = 0;
};

// Called once a request, in the order they arrive, on the thread that called fetch().
using DeliverFragment = FunctionRef<void(size_t request, Result<SharedBytes> fragment)>;

// Not for two threads at once.
class FragmentSource {
 public:
  virtual ~FragmentSource() = default;

  // For messages.
  virtual std::string name() const = 0;
  // What there is to load. Valid as long as the source.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  // Delivers every fragment asked for, or an error in its place, and then returns. Fails itself
  // only when cancelled or misused; what has not been delivered by then never is. Bytes may be
  // damaged: a decoder checks them.
  virtual Status fetch(std::span<const FragmentRequest> requests, const CancelToken& cancel,
                       DeliverFragment deliver) = 0;
};

// Tensors that were just encoded.
std::unique_ptr<FragmentSource> memory_fragments(std::vector<EncodedTensor> tensors);

// A `.ht` file on disk.
Result<std::unique_ptr<FragmentSource>> file_fragments(const std::filesystem::path& path);

// A `.ht` file in memory or in a map, such as the weights of an archive; fragments are borrowed
// from it. It may be cut off anywhere behind its directory: the fragments after that are missing.
Result<std::unique_ptr<FragmentSource>> section_fragments(SharedBytes section);

// A `.ht` file behind any byte source: header and directory are read here, fragments on demand.
// With HttpByteSource: range requests to mirrors, and a fragment that arrives damaged from one is
// asked of the next.
Result<std::unique_ptr<FragmentSource>> remote_fragments(std::unique_ptr<ByteSource> bytes,
                                                         const CancelToken& cancel = {});

// A folder with a file for each fragment, so that they can be stored and sent apart; any of them
// may be missing.
//   index.ht                    header and directory of the `.ht` file
//   ID-FFFF.htf                 a whole fragment: the tensor's id in hexadecimal, its number
Result<std::unique_ptr<FragmentSource>> folder_fragments(const std::filesystem::path& folder);
// Makes such a folder (which may exist) of a `.ht` file.
Status split_to_folder(const std::filesystem::path& file, const std::filesystem::path& folder);

}  // namespace hologram::holotensor
