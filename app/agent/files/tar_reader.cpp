#include "app/agent/files/tar_reader.h"

#include <charconv>

namespace atl {
namespace {

constexpr std::size_t kReadBlock = 512, kMaxFiles = 64;

std::string_view field(std::string_view header, std::size_t offset, std::size_t size) {
  const std::string_view text = header.substr(offset, size);
  return text.substr(0, text.find('\0'));
}

bool octal(std::string_view text, std::uint64_t& value) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  return error == std::errc() && end == text.data() + text.size();
}

bool checksum_fits(std::string_view header) {
  std::uint64_t said = 0, sum = 0;
  for (std::size_t i = 0; i < kReadBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return octal(field(header, 148, 8), said) && said == sum;
}

}  // namespace

Result<std::map<std::string, std::string>> read_tar(std::string_view archive) {
  const Error corrupt{ErrorCode::kCorrupt, "it is no whole archive of this program; take another copy of it"};
  std::map<std::string, std::string> files;
  for (;;) {
    if (archive.size() < 2 * kReadBlock) return corrupt;
    const std::string_view header = archive.substr(0, kReadBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) return files;
    std::uint64_t size = 0;
    const std::string_view name = field(header, 0, 100);
    const bool plain = checksum_fits(header) && header[156] == '0' && field(header, 257, 6) == "ustar";
    if (!plain || name.empty() || files.size() >= kMaxFiles || !octal(field(header, 124, 12), size)) return corrupt;
    const std::uint64_t blocks = (size + kReadBlock - 1) / kReadBlock;
    if (blocks > archive.size() / kReadBlock - 1) return corrupt;
    if (!files.emplace(name, archive.substr(kReadBlock, size)).second) return corrupt;
    archive.remove_prefix((1 + blocks) * kReadBlock);
  }
}

}  // namespace atl
