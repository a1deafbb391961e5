#include "cli/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <string_view>
#include <vector>

#include "support/file.h"

namespace hologram::cli {
namespace {

using Reader = std::unique_ptr<archive, int (*)(archive*)>;

std::unexpected<Error> broken(const std::filesystem::path& path, archive* zip) {
  const char* text = archive_error_string(zip);
  return fail(ErrorCode::corrupt, "'{}' is not a readable .npz file: {}", path.string(),
              text ? text : "unknown damage");
}

}  // namespace

Result<std::map<std::string, NpyArray>> read_npz(const std::filesystem::path& path) {
  HOLOGRAM_TRY(const FileMap file, FileMap::open(path));
  const Reader zip(archive_read_new(), archive_read_free);
  archive_read_support_format_zip(zip.get());
  if (archive_read_open_memory(zip.get(), file.bytes().data(), file.size()) != ARCHIVE_OK)
    return broken(path, zip.get());
  std::map<std::string, NpyArray> arrays;
  while (true) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(zip.get(), &entry);
    if (status == ARCHIVE_EOF) return arrays;
    if (status != ARCHIVE_OK) return broken(path, zip.get());
    std::vector<std::byte> bytes;
    while (true) {
      const size_t done = bytes.size();
      bytes.resize(done + (size_t{1} << 16));
      const la_ssize_t got = archive_read_data(zip.get(), bytes.data() + done, bytes.size() - done);
      if (got < 0) return broken(path, zip.get());
      bytes.resize(done + static_cast<size_t>(got));
      if (got == 0) break;
    }
    std::string name = archive_entry_pathname(entry) ? archive_entry_pathname(entry) : "";
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    HOLOGRAM_TRY(NpyArray array, in_context(parse_npy(bytes), [&] {
                   return fmt::format("{}: '{}'", path.string(), name);
                 }));
    arrays.insert_or_assign(std::move(name), std::move(array));
  }
}

Status write_npz(const std::filesystem::path& path, const std::map<std::string, NpyArray>& arrays) {
  HOLOGRAM_TRY(FileWriter writer, FileWriter::create(path));
  struct Sink {
    FileWriter* writer;
    Status status;
  } sink{&writer, {}};
  const Reader zip(archive_write_new(), archive_write_free);
  archive_write_set_format_zip(zip.get());
  archive_write_zip_set_compression_store(zip.get());
  archive_write_set_bytes_in_last_block(zip.get(), 1);
  const auto write = [](archive*, void* data, const void* bytes, size_t size) -> la_ssize_t {
    auto* target = static_cast<Sink*>(data);
    target->status = target->writer->write({static_cast<const std::byte*>(bytes), size});
    return target->status ? static_cast<la_ssize_t>(size) : -1;
  };
  archive_write_open2(zip.get(), &sink, nullptr, write, nullptr, nullptr);
  for (const auto& [name, array] : arrays) {
    HOLOGRAM_TRY(const std::vector<std::byte> bytes,
                 format_npy(array.type, array.shape, array.data));
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         archive_entry_free);
    archive_entry_set_pathname(entry.get(), (name + ".npy").c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_write_header(zip.get(), entry.get());
    archive_write_data(zip.get(), bytes.data(), bytes.size());
  }
  archive_write_close(zip.get());
  HOLOGRAM_CHECK(sink.status);
  return writer.commit();
}

}  // namespace hologram::cli
