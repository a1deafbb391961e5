#include "backends/registry.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/null/null_backend.h"

namespace hologram::backends {
namespace {

Result<std::unique_ptr<Backend>> create_cpu(const Config& config) {
  CpuOptions options;
  options.threads = config.num_threads;
  options.max_buffer_bytes = config.max_buffer_size;
  options.pool_bytes = config.buffer_pool_size;
  options.native = config.enable_simd;
  return CpuBackend::create(options);
}

Result<std::unique_ptr<Backend>> create_null(const Config& config) {
  return NullBackend::create(config.max_buffer_size);
}

struct Entry {
  std::string_view name;
  Result<std::unique_ptr<Backend>> (*create)(const Config&);
};
constexpr Entry kBackends[] = {{"cpu", create_cpu}, {"null", create_null}};

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kBackends) names.push_back(entry.name);
  return names;
}

Result<std::unique_ptr<Backend>> create_backend(const Config& config) {
  for (const Entry& entry : kBackends)
    if (entry.name == config.backend) return entry.create(config);
  return fail(ErrorCode::not_found, "there is no backend '{}' in this build; there are {}",
              config.backend, fmt::join(backend_names(), ", "));
}

}  // namespace hologram::backends
