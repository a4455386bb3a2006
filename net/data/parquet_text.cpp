#include "net/data/parquet_text.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "net/base/printable.h"
#include "net/data/parquet_module.h"

namespace atl {
namespace {

constexpr char kModuleFile[] = "libatoll-parquet.so";

// Beside the program, where it is installed, or where it was built.
const AtollParquetModule* open_module() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const std::filesystem::path places[] = {program / kModuleFile,
                                          program.parent_path() / ATOLL_PARQUET_LIBDIR / kModuleFile,
                                          program.parent_path() / "lib" / kModuleFile};
  for (const auto& place : places) {
    if (!std::filesystem::exists(place, ignored)) continue;
    void* const library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: Arrow has threads of its own
    if (library == nullptr) continue;
    const auto answer = reinterpret_cast<decltype(&atoll_parquet_module)>(::dlsym(library, kParquetModuleSymbol));
    if (answer == nullptr) continue;
    const AtollParquetModule* const module = answer();
    if (module->version == kParquetModuleVersion) return module;
  }
  return nullptr;
}

const AtollParquetModule* the_module() {
  static const AtollParquetModule* const module = open_module();
  return module;
}

struct ReaderCloser {
  const AtollParquetModule* module = nullptr;
  void operator()(void* reader) const noexcept { module->close(reader); }
};

class ParquetBlocks : public TextBlocks {
 public:
  ParquetBlocks(const AtollParquetModule& module, const TextFile& file, void* reader, std::size_t block_bytes)
      : module_(module), file_(file), reader_(reader, ReaderCloser{&module}), block_bytes_(block_bytes) {}

  Result<std::optional<TextBlock>> next() override {
    TextBlock block{.bytes = {}, .ends = {}, .first = row_, .offset = 0, .disk_bytes = 0};
    const auto append = [](void* context, const char* text, std::size_t bytes) {
      auto& into = *static_cast<TextBlock*>(context);
      if (bytes != 0) into.bytes.append(text, bytes);
      into.ends.push_back(into.bytes.size());
    };
    while (block.bytes.size() < block_bytes_) {
      std::array<char, 512> why{};
      const std::int64_t rows = module_.next(reader_.get(), append, &block, why.data(), why.size());
      if (rows < 0) {
        return Error{ErrorCode::kCorrupt, fmt::format("{} cannot be read behind row {}: {}", file_.path.string(),
                                                      row_ + block.ends.size() - 1, printable(why.data()))};
      }
      if (rows == 0) break;
    }
    if (block.ends.empty()) return std::optional<TextBlock>();
    ATOLL_RETURN_IF_ERROR(check_lengths(block));
    row_ += block.ends.size();
    block.disk_bytes = file_.disk_bytes;
    return std::optional(std::move(block));
  }

 private:
  Status check_lengths(const TextBlock& block) const {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < block.ends.size(); ++i) {
      if (block.ends[i] - begin > kMaxDocumentBytes) {
        return Error{ErrorCode::kInvalidArgument, fmt::format("{} row {} is longer than {} MiB", file_.path.string(),
                                                              block.first + i, kMaxDocumentBytes >> 20)};
      }
      begin = block.ends[i];
    }
    return ok_status();
  }

  const AtollParquetModule& module_;
  const TextFile file_;
  std::unique_ptr<void, ReaderCloser> reader_;
  const std::size_t block_bytes_;
  std::uint64_t row_ = 1;
};

}  // namespace

bool reads_parquet() { return the_module() != nullptr; }

Result<std::unique_ptr<TextBlocks>> open_parquet_text(const TextFile& file, const ReadOptions& options) {
  const AtollParquetModule* const module = the_module();
  if (module == nullptr) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("{}: this build of Atoll reads no Parquet, for Apache Arrow was not there when it was built; run "
                    "installer/arrow.sh and build again, or convert the file to .jsonl.zst",
                    file.path.string())};
  }
  if (!file.path.string().ends_with(".parquet")) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is compressed as a whole; decompress it first: Parquet is read from both ends, and "
                             "compressed inside",
                             file.path.string())};
  }
  std::array<char, 2048> why{};
  void* const reader = module->open(file.path.c_str(), options.field.c_str(), why.data(), why.size());
  if (reader == nullptr) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} cannot be read: {}", file.path.string(), printable(why.data()))};
  }
  return std::unique_ptr<TextBlocks>(std::make_unique<ParquetBlocks>(*module, file, reader, options.block_bytes));
}

}  // namespace atl
