// A dataset of a few small shards with chunks of 2,048 tokens, whose tokens are known by their place. For tests.
#pragma once

#include <QtCore/QtGlobal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "net/base/sha256.h"
#include "net/data/chunk_store.h"
#include "net/data/dataset.h"
#include "net/data/token_shard.h"
#include "net/data/tree_builder.h"

namespace atl::test {

inline constexpr std::uint32_t kChunkBytes = kMinChunkBytes;  // 2,048 tokens
inline constexpr std::uint32_t kVocabulary = 1000;

template <class T>
T must(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}

// Shards of these many tokens, with a manifest; token i of the split is i % 997.
inline Dataset write_dataset(const std::filesystem::path& directory, const std::vector<std::uint64_t>& sizes) {
  DatasetManifest manifest;
  manifest.vocab_size = kVocabulary;
  manifest.end_of_text = 999;
  manifest.tokenizer = "test";
  manifest.tokenizer_file = TokenizerEntry{"test.json", 0, std::string(64, '0')};
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::uint16_t> tokens(sizes[i]);
    for (std::uint16_t& token : tokens) token = static_cast<std::uint16_t>(next++ % 997);
    const std::string content =
        to_string(encode_token_shard_header({2, kVocabulary, sizes[i]})) + to_string(std::as_bytes(std::span(tokens)));
    const std::string name = "train-0000" + std::to_string(i) + ".tok";
    std::ofstream(directory / name, std::ios::binary) << content;
    manifest.train.push_back({name, sizes[i], content.size(), sha256_hex(as_bytes(content))});
  }
  manifest.validation = {manifest.train.front()};
  return must(Dataset::open(directory, manifest));
}

// The hash tree of its training split, in its directory.
inline TreeFile make_tree_file(const std::filesystem::path& directory, const std::vector<std::uint64_t>& sizes) {
  const Dataset dataset = write_dataset(directory, sizes);
  const Status made = make_chunk_tree(dataset, Split::kTrain, kChunkBytes, directory / kTrainTree);
  if (!made.ok()) qFatal("%s", made.error().message.c_str());
  const TreeHead head = must(read_tree_head(directory / kTrainTree));
  return {"web", kTrainTree, head.index_bytes, head.sha256};
}

inline std::vector<std::int32_t> tokens_of(const Chunk& chunk, std::uint64_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  chunk.read(first, tokens);
  return tokens;
}

inline std::vector<std::int32_t> expected(std::uint64_t first, std::size_t count) {
  std::vector<std::int32_t> tokens;
  for (std::uint64_t i = first; i < first + count; ++i) tokens.push_back(static_cast<std::int32_t>(i % 997));
  return tokens;
}

}  // namespace atl::test
