// UTF-8, which all text is: where it is broken, and what a file might be instead. Text in another encoding becomes it
// as it is read. Pure functions, and a stream for one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/base/result.h"
#include "net/data/input_stream.h"

namespace atl {

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
inline constexpr std::string_view kUtf8 = "UTF-8";

// Without those that it begins with: they are no part of what it says.
std::string_view without_byte_order_mark(std::string_view text);

// The first byte that is not UTF-8; nothing: all of it is.
std::optional<std::size_t> broken_utf8_at(std::string_view text);

// kInvalidArgument: `what` is none, since the file's byte `at` begins no character, and what to do. `beginning`: of the
// file, as far as it is there, by which UTF-16 and UTF-32 are told.
Error no_utf8(std::string_view what, std::uint64_t at, unsigned char byte, std::string_view beginning);
// UTF-16 and UTF-32, by their byte order mark, or by zeros where English has them; empty: neither of them.
std::string_view wide_encoding_of(std::string_view beginning);

// kInvalidArgument when this system knows none of that name.
Status check_encoding(const std::string& encoding);
bool is_utf8_name(std::string_view encoding);

// What `stream` gives, of the file `path`, out of `encoding`. An error names the byte that has no meaning in it.
Result<std::unique_ptr<InputStream>> decode_stream(std::unique_ptr<InputStream> stream, const std::string& encoding,
                                                   const std::filesystem::path& path);

}  // namespace atl
