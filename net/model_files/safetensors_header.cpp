#include <nlohmann/json.hpp>

#include "net/model_files/safetensors.h"

namespace atl {

std::string safetensors_header(std::span<const SafetensorsEntry> entries) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::uint64_t end = offset + entry.bytes;
    header[entry.name] = {{"dtype", entry.type_name}, {"shape", entry.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  const std::string text = header.dump();
  const std::uint64_t length = (text.size() + 7) / 8 * 8;
  std::string file(sizeof length, '\0');
  for (std::size_t i = 0; i < sizeof length; ++i) file[i] = static_cast<char>(length >> (8 * i) & 0xff);
  file += text;
  file.resize(sizeof length + length, ' ');
  return file;
}

}  // namespace atl
