#include "app/cli/demo/demo_data.h"

#include <fmt/format.h>

#include "app/cli/demo/demo_options.h"
#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/control/home.h"
#include "net/data/prepare.h"
#include "net/data/text_input.h"

namespace atl {
namespace {

// Of the files' bytes, in order, and of what prepare_dataset makes out of them.
Result<std::string> cache_key(const std::vector<std::filesystem::path>& files) {
  Sha256 hash;
  hash.update(as_bytes("atoll-dataset-1"));
  for (const auto& file : files) {
    ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
    const std::string digest = sha256_hex(mapped.bytes());
    hash.update(as_bytes(digest + file.extension().string()));
  }
  return to_hex(hash.finish()).substr(0, 16);
}

}  // namespace

Result<DemoData> demo_data(const std::vector<std::string>& text, const std::function<void()>& on_prepare) {
  std::vector<std::filesystem::path> inputs(text.begin(), text.end());
  if (inputs.empty()) {
    std::error_code ignored;
    if (!std::filesystem::exists(kDemoText, ignored)) {
      return Error{
          ErrorCode::kNotFound,
          fmt::format("the demo's English text {} is not there; install it with 'apt-get install dict-gcide', or "
                      "train on your own text with --text FILE",
                      kDemoText)};
    }
    inputs = {kDemoText};
  }
  ATOLL_ASSIGN_OR_RETURN(const auto files, expand_text_inputs(inputs));
  ATOLL_ASSIGN_OR_RETURN(const auto cache, cache_directory());
  ATOLL_ASSIGN_OR_RETURN(const std::string key, cache_key(files));
  DemoData data;
  data.directory = cache / "datasets" / key;
  auto dataset = Dataset::open(data.directory);
  // A damaged shard would stop every island of every later demo.
  data.prepared_before = dataset.ok() && dataset->verify().ok();
  if (!data.prepared_before) {
    on_prepare();
    ATOLL_RETURN_IF_ERROR(make_directories(data.directory.parent_path()));
    PrepareOptions options;
    options.replace = true;  // a damaged one
    ATOLL_RETURN_IF_ERROR(prepare_dataset(files, data.directory, options, {}));
    dataset = Dataset::open(data.directory);
    if (!dataset.ok()) return dataset.error();
  }
  data.text_bytes = dataset->manifest().tokens(Split::kTrain) + dataset->manifest().tokens(Split::kValidation);
  return data;
}

}  // namespace atl
