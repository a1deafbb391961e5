// The backends that this build has, by name.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "support/config.h"

namespace hologram::backends {

std::vector<std::string_view> backend_names();

// The backend that `config.backend` names, made with the configuration's limits. not_found, with
// the names there are, for one that this build does not have.
Result<std::unique_ptr<Backend>> create_backend(const Config& config);

}  // namespace hologram::backends
