// The documents that lie end to end in a sequence of tokens. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

namespace atl {

// A document ends with an end_of_text, which is its last token, or with the sequence. tokens: [length + 1], inputs and
// the label behind the last of them. starts [length]: where in the sequence the document of each input begins.
// counts [length + 1]: becomes 0 where the token is a document's first, which nothing of its own predicts.
void find_documents(std::span<const std::int32_t> tokens, std::int32_t end_of_text, std::span<std::int32_t> starts,
                    std::span<std::uint8_t> counts);

}  // namespace atl
