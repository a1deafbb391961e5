// Bytes as a .holo archive, opened and run. The hashes are mended first: without that no changed
// byte would get past them.
#include <cstring>

#include "archive/archive.h"
#include "archive/layout.h"
#include "runtime/session/session.h"
#include "sanitizer_options.h"
#include "support/aligned.h"

namespace {

using namespace hologram;

void mend_hashes(std::span<std::byte> bytes) {
  archive::Header header;
  if (bytes.size() < sizeof(header)) return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.magic = archive::kMagic;
  header.version = archive::kVersion;
  header.file_size = bytes.size();
  if (header.table_offset <= bytes.size() &&
      header.section_count <= (bytes.size() - header.table_offset) / sizeof(archive::Entry)) {
    for (uint64_t i = 0; i < header.section_count; ++i) {
      archive::Entry entry;
      std::byte* at = bytes.data() + header.table_offset + i * sizeof(entry);
      std::memcpy(&entry, at, sizeof(entry));
      if (entry.offset > bytes.size() || entry.hashed_bytes() > bytes.size() - entry.offset)
        continue;
      entry.hash = archive::section_hash(bytes.subspan(entry.offset, entry.hashed_bytes()));
      std::memcpy(at, &entry, sizeof(entry));
    }
    header.table_hash =
        hash128(bytes.subspan(header.table_offset, header.section_count * sizeof(archive::Entry)));
  }
  header.hash = archive::header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

// The budget: short plans on small inputs. Loops may say that they run for ever; they run so long.
constexpr uint64_t kMostStepsRun = 512;
bool is_small(const archive::Plan& plan) {
  constexpr flatbuffers::uoffset_t kMostSteps = 64;
  constexpr uint64_t kMostBytes = 1 << 24;
  if (plan.arena() > kMostBytes || !plan.steps() || plan.steps()->size() > kMostSteps) return false;
  for (const archive::Step* step : *plan.steps())
    if (step->subplans())
      for (const archive::Subplan* sub : *step->subplans())
        if (!is_small(*sub->plan())) return false;
  return true;
}

Result<std::vector<kernels::Value>> inputs_of(const runtime::Session& session) {
  constexpr int64_t kMostElements = 4096;
  std::vector<kernels::Value> inputs;
  for (const runtime::PortInfo& port : session.inputs()) {
    if (port.kind != runtime::PortInfo::Kind::tensor || !port.shape)
      return fail(ErrorCode::unsupported, "not drawn");
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (const Dim& dim : *port.shape) {
      dims.push_back(dim.is_symbol() ? 2 : dim.value());
      if (dims.back() < 0 || dims.back() > kMostElements || (count *= dims.back()) > kMostElements)
        return fail(ErrorCode::unsupported, "too large");
    }
    HOLOGRAM_TRY(kernels::Tensor tensor,
                 kernels::Tensor::allocate(port.dtype, kernels::Dims(dims)));
    if (port.dtype != DType::string)
      for (uint64_t i = 0; i < tensor.bytes(); ++i)
        tensor.data[i] = static_cast<std::byte>(i % (port.dtype == DType::boolean ? 2 : 3));
    inputs.emplace_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > (1 << 20)) return 0;
  auto memory = AlignedBytes::allocate(size);
  if (!memory) return 0;
  std::memcpy(memory->data(), data, size);
  mend_hashes({memory->data(), size});
  auto owner = std::make_shared<AlignedBytes>(*std::move(memory));
  auto archive = archive::Archive::open({owner->data(), size}, owner);
  if (!archive) return 0;
  const bool runs = archive->model().plan() && is_small(*archive->model().plan());
  auto session = runtime::Session::open(*std::move(archive));
  if (!session || !runs) return 0;
  session->limit_steps(kMostStepsRun);
  const auto inputs = inputs_of(*session);
  if (inputs) (void)session->run(*inputs);
  return 0;
}
