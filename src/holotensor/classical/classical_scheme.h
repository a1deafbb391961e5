// ClassicalScheme: the common part of spectral, projection and lowrank.
//
// Parameters: u8 version; u8 exact; i16 exponent; f64 step; the transform's own.
// A payload: varint size and integers of the essential part; varint size and integers of its own
// part; the rest is this fragment's share of the exact residual, a range of the elements.
#pragma once

#include "holotensor/classical/transform.h"
#include "holotensor/scheme.h"

namespace hologram::holotensor {

class ClassicalScheme final : public Scheme {
 public:
  // Keeps the reference.
  explicit ClassicalScheme(const Transform& transform) : transform_(transform) {}

  SchemeId id() const override { return transform_.id(); }
  Result<SchemeOutput> encode(const TensorView& tensor, const EncoderOptions& options,
                              ThreadPool& pool) const override;

 private:
  const Transform& transform_;
};

}  // namespace hologram::holotensor
