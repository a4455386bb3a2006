// How fast a tokenizer is: megabytes of text a second, and checks that the tokens lead back to the text.
//
//   tokenizer_bench TOKENIZER TEXTFILE [THREADS [REPEATS [IDSFILE]]]
//
// Each thread has a scratch of its own and encodes the whole text, in documents of about 100 KB, as a corpus would be.
// Prints bytes, tokens and the best of the repeats as JSON; IDSFILE gets the first thread's tokens as 32-bit numbers.
// tokenizer_peers.py compares.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "net/base/file.h"
#include "net/tokenizer/load_tokenizer.h"

namespace {

using namespace atl;

constexpr std::size_t kDocumentBytes = 100'000;

// Cut after a line's end, so that peers that take Unicode can be given the same ones.
std::vector<std::string_view> documents_of(std::string_view text) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const std::size_t end = text.size() <= kDocumentBytes ? std::string_view::npos : text.find('\n', kDocumentBytes);
    documents.push_back(text.substr(0, end == std::string_view::npos ? text.size() : end + 1));
    text.remove_prefix(documents.back().size());
  }
  return documents;
}

double seconds_of(const Tokenizer& tokenizer, const std::vector<std::string_view>& documents,
                  std::vector<std::vector<TokenId>>& ids) {
  std::vector<std::unique_ptr<TokenizerScratch>> scratches;
  for (std::size_t i = 0; i < ids.size(); ++i) scratches.push_back(tokenizer.make_scratch());
  const auto began = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      threads.emplace_back([&, i] {
        ids[i].clear();
        for (const std::string_view document : documents) {
          if (!tokenizer.encode(document, SpecialText::kIsText, *scratches[i], ids[i]).ok()) std::abort();
        }
      });
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return std::fprintf(stderr, "tokenizer_bench TOKENIZER TEXTFILE [THREADS [REPEATS [IDSFILE]]]\n"), 2;
  const auto tokenizer = load_tokenizer(arguments[1]);
  if (!tokenizer.ok()) return std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str()), 1;
  const auto text = read_file(arguments[2], std::size_t{4} << 30);
  if (!text.ok()) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 1;
  const int threads = count > 3 ? std::max(1, std::atoi(arguments[3])) : 1;
  const int repeats = count > 4 ? std::max(1, std::atoi(arguments[4])) : 5;
  const auto documents = documents_of(*text);
  std::vector<std::vector<TokenId>> ids(static_cast<std::size_t>(threads));
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) best = std::min(best, seconds_of(**tokenizer, documents, ids));

  std::string bytes;
  const bool decoded = (*tokenizer)->decode(ids[0], bytes).ok();
  if (!decoded || (bytes != *text && (*tokenizer)->facts().kind != "qwen2")) {
    return std::fprintf(stderr, "the tokens do not lead back to the text\n"), 1;
  }
  if (count > 5) {
    std::ofstream(arguments[5], std::ios::binary)
        .write(reinterpret_cast<const char*>(ids[0].data()),
               static_cast<std::streamsize>(ids[0].size() * sizeof(TokenId)));
  }
  const double all_bytes = static_cast<double>(text->size()) * threads;
  fmt::print(
      "{{\"bytes\": {}, \"tokens\": {}, \"threads\": {}, \"seconds\": {:.4f}, \"megabytes_per_second\": {:.1f}}}\n",
      text->size(), ids[0].size(), threads, best, all_bytes / best / 1e6);
  return 0;
}
