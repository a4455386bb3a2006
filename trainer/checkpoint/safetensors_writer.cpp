#include <nlohmann/json.hpp>

#include "net/base/new_file.h"
#include "trainer/checkpoint/safetensors.h"

namespace atl {
namespace {

std::string header_of(std::span<const SafetensorsEntry> entries) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::uint64_t end = offset + entry.values.size_bytes();
    header[entry.name] = {{"dtype", "F32"}, {"shape", entry.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors begin at a multiple of 8 bytes
  return text;
}

Status write_contents(NewFile& file, std::span<const SafetensorsEntry> entries) {
  const std::string header = header_of(entries);
  const std::uint64_t length = header.size();
  ATOLL_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(&length, 1))));
  ATOLL_RETURN_IF_ERROR(file.write(as_bytes(header)));
  for (const SafetensorsEntry& entry : entries) ATOLL_RETURN_IF_ERROR(file.write(std::as_bytes(entry.values)));
  return ok_status();
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsEntry> entries) {
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(path, FileMode::kPublic));
  ATOLL_RETURN_IF_ERROR(write_contents(file, entries));
  return file.take_place();
}

}  // namespace atl
