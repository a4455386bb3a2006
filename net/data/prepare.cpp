#include "net/data/prepare.h"

#include <fmt/format.h>
#include <algorithm>

#include "net/base/new_file.h"
#include "net/data/shard_writer.h"
#include "net/data/text_input.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

constexpr std::uint64_t kMinBlocks = 50;
constexpr std::uint64_t kProgressBytes = 1u << 20;

// The first pass: how much text there is, and that it can be read.
class CountingSink : public TextSink {
 public:
  explicit CountingSink(const PrepareProgress& progress) : progress_(progress) {}
  Status text(std::string_view piece) override {
    bytes_ += piece.size();
    if (progress_) progress_(bytes_, 0);
    return ok_status();
  }
  Status end_of_document() override { return ok_status(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const PrepareProgress& progress_;
  std::uint64_t bytes_ = 0;
};

// Which blocks of the text are held out: one in each stretch of `every`, and one in the last, shorter one if it is at
// least half as long.
class HeldOutBlocks {
 public:
  HeldOutBlocks(std::uint64_t total_bytes, const PrepareOptions& options)
      : every_(std::max<std::uint64_t>(2, options.validation_every)), seed_(options.seed) {
    block_bytes_ = std::clamp<std::uint64_t>(total_bytes / kMinBlocks, 1, options.block_bytes);
    blocks_ = (total_bytes + block_bytes_ - 1) / block_bytes_;
  }

  std::uint64_t block_bytes() const { return block_bytes_; }

  bool held_out(std::uint64_t block) const {
    if (block >= blocks_) return false;
    const std::uint64_t stretch = block / every_;
    const std::uint64_t length = std::min(every_, blocks_ - stretch * every_);
    if (stretch > 0 && length < every_ / 2) return false;
    return block % every_ == mix(seed_ + 0x9e3779b97f4a7c15u * (stretch + 1)) % length;
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {  // the finalizer of SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::uint64_t every_;
  std::uint64_t seed_;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t blocks_ = 0;
};

// The second pass: cuts the text into blocks and sends each to its split. Where a piece of a split ends, it says
// kEndOfText.
class SplittingSink : public TextSink {
 public:
  SplittingSink(const HeldOutBlocks& blocks, std::uint64_t total_bytes, ShardWriter& train, ShardWriter& validation,
                const PrepareProgress& progress)
      : blocks_(blocks), total_bytes_(total_bytes), train_(train), validation_(validation), progress_(progress) {}

  Status text(std::string_view piece) override {
    while (!piece.empty()) {
      const std::uint64_t block = position_ / blocks_.block_bytes();
      ShardWriter* const writer = blocks_.held_out(block) ? &validation_ : &train_;
      if (writer != open_piece_) {
        ATOLL_RETURN_IF_ERROR(end_of_document());
        open_piece_ = writer;
      }
      const std::uint64_t room = (block + 1) * blocks_.block_bytes() - position_;
      const std::string_view part = piece.substr(0, std::min<std::uint64_t>(room, piece.size()));
      ATOLL_RETURN_IF_ERROR(writer->put_text(part));
      piece.remove_prefix(part.size());
      position_ += part.size();
    }
    if (progress_ && position_ - reported_ >= kProgressBytes) progress_(reported_ = position_, total_bytes_);
    return ok_status();
  }

  Status end_of_document() override {
    if (open_piece_ != nullptr) ATOLL_RETURN_IF_ERROR(open_piece_->put_token(kEndOfText));
    open_piece_ = nullptr;
    return ok_status();
  }

  std::uint64_t position() const { return position_; }

 private:
  const HeldOutBlocks& blocks_;
  const std::uint64_t total_bytes_;
  ShardWriter& train_;
  ShardWriter& validation_;
  const PrepareProgress& progress_;
  std::uint64_t position_ = 0;
  std::uint64_t reported_ = 0;
  ShardWriter* open_piece_ = nullptr;
};

// Over a dataset that is there already, too.
Status replace_output(NewDirectory staging, const std::filesystem::path& output) {
  std::error_code ignored;
  if (!std::filesystem::exists(output, ignored)) return staging.take_place();
  // The old one goes aside, and with its owner once the new one is there.
  ATOLL_ASSIGN_OR_RETURN(const NewDirectory old, NewDirectory::create(output, FileMode::kPrivate));
  const std::filesystem::path aside = old.path() / "old";
  if (const Status moved = rename_and_flush(output, aside); !moved.ok()) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot replace the dataset in {}: {}", output.string(), moved.error().message)};
  }
  Status placed = staging.take_place();
  if (!placed.ok()) (void)rename_and_flush(aside, output);
  return placed;
}

Status check_output(const std::filesystem::path& output, bool replace) {
  std::error_code error;
  if (!std::filesystem::exists(output, error)) return ok_status();
  const bool is_directory = std::filesystem::is_directory(output, error);
  if (is_directory && std::filesystem::is_empty(output, error)) return ok_status();
  if (!is_directory || !std::filesystem::exists(output / "dataset.json", error)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} exists and is no dataset; nothing was touched: choose another directory", output.string())};
  }
  if (replace) return ok_status();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} holds a dataset already; choose another directory, or replace it with --force", output.string())};
}

std::filesystem::path without_trailing_slash(const std::filesystem::path& path) {
  const auto normal = std::filesystem::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

Result<DatasetManifest> prepare_dataset(const std::vector<std::filesystem::path>& inputs,
                                        const std::filesystem::path& output, const PrepareOptions& options,
                                        const PrepareProgress& progress) {
  const std::filesystem::path target = without_trailing_slash(output);
  ATOLL_RETURN_IF_ERROR(check_output(target, options.replace));
  ATOLL_ASSIGN_OR_RETURN(const auto files, expand_text_inputs(inputs));

  CountingSink counter(progress);
  for (const auto& file : files) ATOLL_RETURN_IF_ERROR(read_text_file(file, counter));
  if (counter.bytes() < kMinTextBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} bytes of text are too few to train on and hold some out; at least "
                             "{} are needed",
                             counter.bytes(), kMinTextBytes)};
  }

  ATOLL_ASSIGN_OR_RETURN(NewDirectory staging, NewDirectory::create(target, FileMode::kPublic));
  ShardWriter train(staging.path(), "train", options.shard_tokens),
      validation(staging.path(), "validation", options.shard_tokens);
  const HeldOutBlocks blocks(counter.bytes(), options);
  SplittingSink splitter(blocks, counter.bytes(), train, validation, progress);
  for (const auto& file : files) ATOLL_RETURN_IF_ERROR(read_text_file(file, splitter));
  if (splitter.position() != counter.bytes()) {
    return Error{ErrorCode::kIo, "the text changed while it was being read; try again"};
  }

  DatasetManifest manifest;
  ATOLL_ASSIGN_OR_RETURN(manifest.train, train.finish());
  ATOLL_ASSIGN_OR_RETURN(manifest.validation, validation.finish());
  ATOLL_RETURN_IF_ERROR(
      write_file_atomically(staging.path() / "dataset.json", manifest.to_json() + "\n", FileMode::kPublic));
  ATOLL_RETURN_IF_ERROR(replace_output(std::move(staging), target));
  if (progress) progress(counter.bytes(), counter.bytes());
  return manifest;
}

}  // namespace atl
