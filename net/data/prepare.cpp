#include "net/data/prepare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>

#include "net/base/new_file.h"
#include "net/base/parallel.h"
#include "net/base/sha256.h"
#include "net/data/chat.h"
#include "net/data/prepare_passes.h"
#include "net/data/text_encoding.h"

namespace atl {
namespace {

// Over a dataset that is there already, too.
Status take_output(const std::filesystem::path& made, const std::filesystem::path& output) {
  std::error_code ignored;
  if (!std::filesystem::exists(output, ignored)) return rename_and_flush(made, output);
  if (std::filesystem::is_empty(output, ignored)) {
    std::filesystem::remove(output, ignored);
    return rename_and_flush(made, output);
  }
  // The old one goes aside, and with its owner once the new one is there.
  ATOLL_ASSIGN_OR_RETURN(const NewDirectory old, NewDirectory::create(output, FileMode::kPrivate));
  const std::filesystem::path aside = old.path() / "old";
  if (const Status moved = rename_and_flush(output, aside); !moved.ok()) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot replace the dataset in {}: {}", output.string(), moved.error().message)};
  }
  Status placed = rename_and_flush(made, output);
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

Status check_chats(const std::vector<TextFile>& files, const Tokenizer& tokenizer) {
  for (const TextFile& file : files) {
    if (file.format == TextFormat::kJsonLines) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no JSON Lines (.jsonl, .ndjson, .json), of which --chat reads a chat a line",
                             file.path.string())};
  }
  ATOLL_RETURN_IF_ERROR(llama3_chat_tokens(tokenizer));
  return ok_status();
}

// All that the dataset's bytes depend on.
std::string preparation_key(const std::vector<TextFile>& files, const PrepareOptions& options) {
  Sha256 hash;
  const DatasetTokenizer& tokenizer = options.tokenizer;
  hash.update(as_bytes(fmt::format("atoll-prepare-3\n{} {}\n{}\n{} {} {} {} {} {}\n",
                                   sha256_hex(as_bytes(tokenizer.file)), tokenizer.end_of_text, options.read.field,
                                   options.read.whole_files, options.read.block_bytes, options.validation_share,
                                   options.seed, options.keep_duplicates, options.shard_tokens)));
  if (options.read.chat) hash.update(as_bytes(std::string_view("chat-2\n")));
  if (!options.read.encoding.empty()) hash.update(as_bytes("encoding " + options.read.encoding + "\n"));
  for (const TextFile& file : files) {
    hash.update(as_bytes(fmt::format("{} {} {} {}\n", std::filesystem::absolute(file.path).string(), file.source,
                                     file.disk_bytes, file.modified)));
  }
  return to_hex(hash.finish());
}

// Where it is prepared, and that nobody else does so there.
class Workplace {
 public:
  static Result<Workplace> enter(std::filesystem::path directory) {
    ATOLL_RETURN_IF_ERROR(make_directories(directory));
    UniqueFd lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock) return errno_error("open", directory);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      return Error{ErrorCode::kConflict,
                   fmt::format("another process prepares data in {}; wait for it, or choose another "
                               "--output",
                               directory.string())};
    }
    return Workplace(std::move(directory), std::move(lock));
  }

  const std::filesystem::path& path() const { return path_; }
  Status empty() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
      std::filesystem::remove_all(entry.path(), error);
      if (error)
        return Error{ErrorCode::kIo, fmt::format("cannot remove {}: {}", entry.path().string(), error.message())};
    }
    return ok_status();
  }
  void leave_nothing() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  Workplace(std::filesystem::path path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  UniqueFd lock_;
};

Result<PrepareJournal> begin_or_go_on(Workplace& place, const std::string& key, const PrepareOptions& options) {
  if (options.restart) ATOLL_RETURN_IF_ERROR(place.empty());
  ATOLL_ASSIGN_OR_RETURN(std::optional<PrepareJournal> journal, PrepareJournal::load(place.path()));
  if (journal && journal->key == key) return std::move(*journal);
  if (journal) {
    return Error{ErrorCode::kConflict,
                 fmt::format("{} holds what another command left unfinished, of other inputs or options (or a file has "
                             "changed); finish that one with the same command, or remove it with --restart",
                             place.path().string())};
  }
  ATOLL_RETURN_IF_ERROR(place.empty());
  PrepareJournal fresh;
  fresh.key = key;
  return fresh;
}

void name_sources(const std::vector<std::filesystem::path>& inputs, const std::vector<TextFile>& files,
                  DataStatistics& statistics) {
  statistics.sources.resize(std::min(inputs.size(), kMaxSources));
  for (std::size_t i = 0; i < statistics.sources.size(); ++i) {
    statistics.sources[i].name = without_trailing_slash(inputs[i]).filename().string();
  }
  if (inputs.size() > kMaxSources) statistics.sources.back().name = "all others";
  for (const TextFile& file : files) {
    statistics.sources[std::min(file.source, statistics.sources.size() - 1)].files += 1;
  }
}

// Of interest where there is too little text: the field may be another.
std::string without_text(const PreparePass& pass) {
  const std::uint64_t documents = pass.journal.statistics.without_text;
  if (documents == 0) return {};
  return fmt::format(" ({} documents have none: the field \"{}\" is null or empty there)", documents,
                     pass.options.read.field);
}

Result<DocumentPlan> make_plan(const PreparePass& pass) {
  if (pass.journal.text_bytes < kMinTextBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} bytes of text are too few to train on and hold some out; at least {} are needed{}",
                             pass.journal.text_bytes, kMinTextBytes, without_text(pass))};
  }
  ATOLL_ASSIGN_OR_RETURN(const MappedFile records, MappedFile::open(pass.directory / kDocumentsFile));
  const PrepareOptions& options = pass.options;
  return plan_documents(records.bytes(),
                        {.validation_share = options.validation_share,
                         .seed = options.seed,
                         .keep_duplicates = options.keep_duplicates,
                         .memory_bytes = options.memory_bytes},
                        [&](std::uint64_t done, std::uint64_t total) {
                          if (pass.progress) pass.progress({PrepareStage::kComparing, done, total, 0, 0});
                        });
}

Result<DocumentPlan> read_and_plan(const PreparePass& pass) {
  if (pass.journal.writing) {
    ATOLL_ASSIGN_OR_RETURN(std::string packed, read_file(pass.directory / kPlanFile, SIZE_MAX));
    if (packed.size() != pass.journal.documents / 4 + 1) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} is damaged; start anew with --restart", (pass.directory / kPlanFile).string())};
    }
    return DocumentPlan(std::move(packed));
  }
  ATOLL_RETURN_IF_ERROR(read_all_text(pass));
  ATOLL_ASSIGN_OR_RETURN(DocumentPlan plan, make_plan(pass));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(pass.directory / kPlanFile, plan.packed(), FileMode::kPublic));
  pass.journal.writing = true;
  pass.journal.next = {};
  ATOLL_RETURN_IF_ERROR(pass.journal.save(pass.directory));
  return plan;
}

Result<DatasetManifest> write_manifest(const PreparePass& pass) {
  const DatasetTokenizer& tokenizer = pass.options.tokenizer;
  DatasetManifest manifest;
  manifest.tokenizer = tokenizer.tokenizer->facts().kind;
  manifest.vocab_size = tokenizer.tokenizer->facts().vocab_size;
  manifest.begin_of_text = tokenizer.begin_of_text;
  manifest.end_of_text = tokenizer.end_of_text;
  manifest.train = pass.journal.train.shards;
  manifest.validation = pass.journal.validation.shards;
  manifest.marked_labels = pass.options.read.chat;
  manifest.statistics = pass.journal.statistics;
  manifest.license = pass.options.license;
  if (!tokenizer.file_name.empty()) {
    manifest.tokenizer_file = {tokenizer.file_name, tokenizer.file.size(), sha256_hex(as_bytes(tokenizer.file))};
    ATOLL_RETURN_IF_ERROR(
        write_file_atomically(pass.directory / tokenizer.file_name, tokenizer.file, FileMode::kPublic));
  }
  ATOLL_RETURN_IF_ERROR(
      write_file_atomically(pass.directory / "dataset.json", manifest.to_json() + "\n", FileMode::kPublic));
  std::error_code ignored;
  for (const char* file : {kPrepareJournalFile, kDocumentsFile, kBlocksFile, kPlanFile}) {
    std::filesystem::remove(pass.directory / file, ignored);
  }
  ATOLL_RETURN_IF_ERROR(flush_directory(pass.directory));
  return manifest;
}

Result<DatasetManifest> prepare_in(const PreparePass& pass) {
  ATOLL_ASSIGN_OR_RETURN(const DocumentPlan plan, read_and_plan(pass));
  ATOLL_RETURN_IF_ERROR(write_all_tokens(pass, plan));
  return write_manifest(pass);
}

}  // namespace

Result<DatasetManifest> prepare_dataset(const std::vector<std::filesystem::path>& inputs,
                                        const std::filesystem::path& output, const PrepareOptions& asked,
                                        const OnPrepareProgress& progress) {
  const std::filesystem::path target = without_trailing_slash(output);
  ATOLL_RETURN_IF_ERROR(check_output(target, asked.replace));
  if (!asked.license.empty() && !is_license(asked.license)) {
    return Error{
        ErrorCode::kInvalidArgument,
        "a licence is an SPDX expression, like CC-BY-4.0 or 'MIT OR Apache-2.0'; one that has no name there is "
        "LicenseRef-NAME"};
  }
  if (!asked.read.encoding.empty()) ATOLL_RETURN_IF_ERROR(check_encoding(asked.read.encoding));
  ATOLL_ASSIGN_OR_RETURN(const FoundText found, find_text(inputs));
  const std::vector<TextFile>& files = found.files;
  if (asked.read.chat) ATOLL_RETURN_IF_ERROR(check_chats(files, *asked.tokenizer.tokenizer));
  PrepareOptions options = asked;
  if (options.threads == 0) options.threads = parallel_threads();

  const std::filesystem::path beside = target.parent_path() / (target.filename().string() + ".preparing");
  ATOLL_ASSIGN_OR_RETURN(Workplace place, Workplace::enter(beside));
  ATOLL_ASSIGN_OR_RETURN(PrepareJournal journal, begin_or_go_on(place, preparation_key(files, options), options));
  if (journal.statistics.sources.empty()) name_sources(inputs, files, journal.statistics);
  auto manifest = prepare_in({files, options, place.path(), journal, progress});
  if (!manifest.ok()) {
    // What is wrong with the inputs is mostly found before anything is written, and the call that is mended is another
    // one, which could not go on with this. Else what was done is kept: the disk may be full.
    const ErrorCode code = manifest.error().code;
    const bool of_inputs = code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound ||
                           code == ErrorCode::kPermissionDenied || code == ErrorCode::kCorrupt;
    if (code == ErrorCode::kInvalidArgument || (of_inputs && !journal.writing)) place.leave_nothing();
    return manifest.error();
  }
  ATOLL_RETURN_IF_ERROR(take_output(place.path(), target));
  return manifest;
}

}  // namespace atl
