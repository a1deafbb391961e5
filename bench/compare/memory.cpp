#include "bench/compare/memory.h"

#include "bench/compare/child.h"

namespace hologram::compare {

using nlohmann::json;
namespace fs = std::filesystem;

json measure_memory(const Job& job, const std::string& side, std::span<const fs::path> folders) {
  json request{{"side", side},
               {"model", job.model.string()},
               {"archive", job.archive.string()},
               {"threads", job.threads},
               {"run", job.entry.run}};
  if (job.key) request["key"] = job.key->public_key().to_text();
  for (const fs::path& folder : folders) request["folders"].push_back(folder.string());
  std::error_code error;
  const fs::path program =
      fs::read_symlink("/proc/self/exe", error).parent_path() / "hologram-peak";
  return in_program(job.threads, program, request.dump());
}

}  // namespace hologram::compare
