// Runs a fuzzer without libFuzzer: every file of its corpus, then mutations of them, always the same. What every test
// run does; long searches are libFuzzer's (README.md).
//
//   fuzz_NAME_test CORPUS_DIRECTORY MILLISECONDS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kMaxInputBytes = 4096;
// Whatever the machine: at most so many, so that a fast one does not search longer than is useful.
constexpr int kMaxMutations = 200'000;

std::vector<Input> read_corpus(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Input> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<Input>& corpus) : corpus_(corpus) {}

  Input next() {
    Input input = corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input);
    if (input.size() > kMaxInputBytes) input.resize(kMaxInputBytes);
    return input;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void change(Input& input) {
    static constexpr std::uint8_t kNotable[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x20, '"', '{', '['};
    const std::size_t at = below(input.size());
    const auto position = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(7)) {
      case 0: input.resize(at); return;
      case 1: input.insert(position, 1 + below(8), static_cast<std::uint8_t>(random_())); return;
      case 2: {
        const Input& other = corpus_[below(corpus_.size())];
        const std::size_t from = below(other.size());
        input.resize(at);
        input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        return;
      }
      default: break;
    }
    if (input.empty()) return;
    switch (below(4)) {
      case 0: input[at] = static_cast<std::uint8_t>(random_()); return;
      case 1: input[at] ^= static_cast<std::uint8_t>(1u << below(8)); return;
      case 2: input[at] = kNotable[below(std::size(kNotable))]; return;
      default: input.erase(position); return;
    }
  }

  const std::vector<Input>& corpus_;
  std::mt19937 random_{20};
};

void run(const Input& input) {
  // In a heap block of exactly its size, reads past its end are seen by AddressSanitizer.
  const Input exact(input.begin(), input.end());
  (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY MILLISECONDS\n", argv[0]);
    return 2;
  }
  const std::vector<Input> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no corpus\n", argv[1]);
    return 1;
  }
  for (const Input& input : corpus) run(input);
  Mutator mutator(corpus);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(argv[2]));
  int mutations = 0;
  for (; mutations < kMaxMutations && std::chrono::steady_clock::now() < end; ++mutations) run(mutator.next());
  std::printf("%zu inputs and %d mutations of them: no finding\n", corpus.size(), mutations);
  return 0;
}
