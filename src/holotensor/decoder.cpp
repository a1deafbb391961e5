#include "holotensor/decoder.h"

#include <algorithm>
#include <new>

#include "holotensor/stream_hash.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

// What a payload may grow to: schemes may store wider values than the source has, and `any`
// repeats.
uint64_t payload_limit(const TensorInfo& info) { return 16 * info.source_bytes() + (1 << 20); }

Status check_output(const TensorInfo& info, DType type) {
  if (type == info.dtype || type == DType::f32 || type == DType::f16 || type == DType::bf16)
    return {};
  return fail(ErrorCode::unsupported,
              "tensor '{}' reconstructs into f32, f16, bf16 or its own type {}, not {}", info.name,
              name_of(info.dtype), name_of(type));
}

Status check_content(const TensorInfo& info, uint64_t hash) {
  if (hash == info.content_hash) return {};
  return fail(ErrorCode::corrupt,
              "tensor '{}': the reconstruction does not match the hash of its source", info.name);
}

// A vector that is too large aborts without exceptions; ask first.
Result<std::vector<std::byte>> allocate(uint64_t size) {
  if (size >= 64u << 20) {
    void* probe = ::operator new(size, std::nothrow);
    if (!probe) return fail(ErrorCode::resource_exhausted, "no memory for {} bytes", size);
    ::operator delete(probe);
  }
  return std::vector<std::byte>(size);
}

}  // namespace

Result<Decoder> Decoder::create(TensorInfo info, ThreadPool* pool) {
  Decoder decoder;
  if (info.curve.size() != info.fragment_count + size_t{1} || info.fragment_count == 0)
    return fail(ErrorCode::corrupt, "tensor '{}' has {} fragments but {} quality points", info.name,
                info.fragment_count, info.curve.size());
  HOLOGRAM_CHECK(element_count(info.shape, info.dtype));
  decoder.info_ = std::make_shared<const TensorInfo>(std::move(info));
  HOLOGRAM_TRY(decoder.scheme_, make_scheme_decoder(*decoder.info_));
  decoder.present_.resize(decoder.info_->fragment_count);
  decoder.pool_ = pool ? pool : &ThreadPool::shared();
  return decoder;
}

Result<Added> Decoder::add_fragment(SharedBytes bytes) {
  const auto place = [&] { return fmt::format("tensor '{}'", info().name); };
  HOLOGRAM_TRY(const Fragment fragment, in_context(parse_fragment(std::move(bytes)), place));
  if (fragment.tensor_id != info().id || fragment.count != info().fragment_count)
    return fail(ErrorCode::invalid_argument,
                "tensor '{}' ({:016x}): fragment {} belongs to another tensor ({:016x})",
                info().name, info().id, fragment.index, fragment.tensor_id);
  if (fragment.index >= info().fragment_count)
    return fail(ErrorCode::corrupt, "tensor '{}': fragment {} of {}", info().name, fragment.index,
                info().fragment_count);
  if (has(fragment.index)) return Added::duplicate;
  HOLOGRAM_TRY(auto payload, in_context(payload_of(fragment, payload_limit(info())), place));
  HOLOGRAM_CHECK(in_context(scheme_->add(fragment.index, std::move(payload)), place));
  present_[fragment.index] = true;
  return Added::accepted;
}

bool Decoder::can_reconstruct() const { return scheme_->usable() > 0; }

uint16_t Decoder::received() const {
  return static_cast<uint16_t>(std::count(present_.begin(), present_.end(), true));
}

Quality Decoder::quality() const { return info().curve[scheme_->usable()]; }

Status Decoder::check_ready(DType type) const {
  HOLOGRAM_CHECK(check_output(info(), type));
  if (!can_reconstruct())
    return fail(ErrorCode::not_found, "tensor '{}' needs {} fragments; {} are usable", info().name,
                info().min_fragments, scheme_->usable());
  return {};
}

Status Decoder::reconstruct(DType type, std::span<std::byte> out) const {
  HOLOGRAM_CHECK(check_ready(type));
  if (out.size() != bytes_for(type, info().elements()))
    return fail(ErrorCode::shape_mismatch, "tensor '{}' as {} has {} bytes; the output has {}",
                info().name, name_of(type), bytes_for(type, info().elements()), out.size());
  HOLOGRAM_CHECK(in_context(scheme_->reconstruct(type, out, *pool_),
                            [&] { return fmt::format("tensor '{}'", info().name); }));
  if (type == info().dtype && quality().exact) return check_content(info(), hash64(out));
  return {};
}

Status Decoder::reconstruct(DType type, TakeBytes take) const {
  HOLOGRAM_CHECK(check_ready(type));
  const uint64_t part = scheme_->part_elements(), total = info().elements();
  if (part == 0) {
    HOLOGRAM_TRY(const auto bytes, reconstruct(type));
    return take(bytes);
  }
  constexpr uint64_t kPiece = 4 << 20;
  const uint64_t at_once = std::max(part, kPiece / (part * size_of(type)) * part);
  std::vector<std::byte> buffer;
  StreamHash hash;
  for (uint64_t first = 0; first < total; first += at_once) {
    buffer.resize(std::min(at_once, total - first) * size_of(type));
    HOLOGRAM_CHECK(in_context(scheme_->reconstruct_part(type, first, buffer, *pool_),
                              [&] { return fmt::format("tensor '{}'", info().name); }));
    if (type == info().dtype) hash.add(buffer);
    HOLOGRAM_CHECK(take(buffer));
  }
  if (type == info().dtype && quality().exact) return check_content(info(), hash.digest());
  return {};
}

Result<std::vector<std::byte>> Decoder::reconstruct(DType type) const {
  HOLOGRAM_CHECK(check_output(info(), type));
  HOLOGRAM_TRY(auto out, allocate(bytes_for(type, info().elements())));
  HOLOGRAM_CHECK(reconstruct(type, out));
  return out;
}

}  // namespace hologram::holotensor
