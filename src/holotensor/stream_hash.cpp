#include "holotensor/stream_hash.h"

#define XXH_STATIC_LINKING_ONLY  // for a state on the heap of its own
#include <xxhash.h>

namespace hologram::holotensor {

struct StreamHash::State {
  XXH3_state_t state;
};

StreamHash::StreamHash() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->state); }
StreamHash::~StreamHash() = default;
void StreamHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->state, bytes.data(), bytes.size());
}
uint64_t StreamHash::digest() const { return XXH3_64bits_digest(&state_->state); }

}  // namespace hologram::holotensor
