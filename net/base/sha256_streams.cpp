#include "net/base/sha256_streams.h"

#include <algorithm>

namespace atl {
namespace {

// What follows a message of whole blocks: a bit, zeros, its length in bits (FIPS 180-4, 5.1.1).
std::array<std::byte, kSha256BlockBytes> padding(std::uint64_t message_bytes) {
  std::array<std::byte, kSha256BlockBytes> block{};
  block[0] = std::byte{0x80};
  std::uint64_t bits = 8 * message_bytes;
  for (std::size_t i = block.size(); bits != 0; bits >>= 8) block[--i] = static_cast<std::byte>(bits & 0xff);
  return block;
}

Digest digest_of(const Sha256Chain& chain) {
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(chain[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  }
  return digest;
}

}  // namespace

Sha256Streams::Sha256Streams(std::size_t count) : own_blocks_(count > 1 && has_sha256_blocks()) {
  if (own_blocks_) {
    chains_.assign(count, kSha256Begin);
  } else {
    for (std::size_t i = 0; i < count; ++i) one_by_one_.push_back(std::make_unique<Sha256>());
  }
}

void Sha256Streams::update(std::span<const ByteView> parts) {
  bytes_ += parts[0].size();
  for (std::size_t i = 0; i < one_by_one_.size(); ++i) one_by_one_[i]->update(parts[i]);
  if (!own_blocks_) return;
  std::array<const std::byte*, kSha256Streams> messages{};
  std::ranges::transform(parts, messages.begin(), [](ByteView part) { return part.data(); });
  sha256_blocks(chains_, std::span(messages).first(parts.size()), parts[0].size() / kSha256BlockBytes);
}

std::vector<Digest> Sha256Streams::finish() {
  std::vector<Digest> digests;
  for (const auto& hash : one_by_one_) digests.push_back(hash->finish());
  if (!own_blocks_) return digests;
  const auto last = padding(bytes_);
  const std::vector<ByteView> parts(chains_.size(), ByteView(last));
  update(parts);
  for (const Sha256Chain& chain : chains_) digests.push_back(digest_of(chain));
  return digests;
}

}  // namespace atl
