// The compression function of SHA-256 (FIPS 180-4, 6.2.2) over several messages in step with each other, by the
// processor's own instructions. One of these waits four cycles for the one before it and could begin every second
// cycle: three messages beside each other take hardly longer than one. Pure functions, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace atl {

inline constexpr std::size_t kSha256BlockBytes = 64;
inline constexpr std::size_t kSha256Streams = 3;  // beyond them the registers run out: four are slower (measured)

using Sha256Chain = std::array<std::uint32_t, 8>;  // H0 to H7
inline constexpr Sha256Chain kSha256Begin{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// The processor has the instructions (x86's SHA extensions), and ATOLL_KERNELS does not say plain.
bool has_sha256_blocks();

// chains[i] goes over `blocks` blocks of 64 bytes from messages[i] on. One to kSha256Streams of each, as many chains as
// messages. Only where has_sha256_blocks().
void sha256_blocks(std::span<Sha256Chain> chains, std::span<const std::byte* const> messages, std::size_t blocks);

}  // namespace atl
