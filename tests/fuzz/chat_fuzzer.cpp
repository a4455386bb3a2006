// A line of anybody's chats: what is read survives as a document, and an error can be shown.
#include <string>

#include "net/base/printable.h"
#include "net/data/chat.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

void check(std::string_view line) {
  const auto chat = read_chat(line);
  if (!chat.ok()) {
    ATOLL_FUZZ_CHECK(is_printable(chat.error().message) && chat.error().message.size() < 4096);
    return;
  }
  ATOLL_FUZZ_CHECK(!chat->empty() && chat->size() <= kMostChatMessages);
  const std::string document = document_of(*chat);
  const std::vector<ChatMessage> again = chat_of(document);
  ATOLL_FUZZ_CHECK(document_of(again) == document && again.size() == chat->size());
  std::size_t said = 0;
  for (const ChatMessage& message : *chat) said += message.content.size();
  ATOLL_FUZZ_CHECK(said <= line.size());  // an escape is longer than what it stands for
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  fuzz::check(to_string(input.rest()));
  return 0;
}
