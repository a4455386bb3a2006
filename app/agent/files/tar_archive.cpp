#include "app/agent/files/tar_archive.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace atl {
namespace {

constexpr std::size_t kTarBlock = 512;

void put(std::array<char, kTarBlock>& header, std::size_t offset, std::string_view text) {
  std::memcpy(header.data() + offset, text.data(), text.size());
}

}  // namespace

void TarArchive::add(std::string_view name, std::string_view content) {
  std::array<char, kTarBlock> header{};
  put(header, 0, name.substr(0, 99));
  put(header, 100, "0000600");
  put(header, 108, "0000000");
  put(header, 116, "0000000");
  put(header, 124, fmt::format("{:011o}", content.size()));
  put(header, 136, fmt::format("{:011o}", time_));
  put(header, 148, "        ");  // the checksum counts itself as spaces
  header[156] = '0';             // a file
  put(header, 257, "ustar");
  put(header, 263, "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(header, 148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  bytes_.append(header.data(), kTarBlock).append(content);
  bytes_.append((kTarBlock - content.size() % kTarBlock) % kTarBlock, '\0');
}

std::string TarArchive::take() {
  bytes_.append(2 * kTarBlock, '\0');
  return std::move(bytes_);
}

}  // namespace atl
