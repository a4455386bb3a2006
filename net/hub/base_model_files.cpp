#include "net/hub/base_model_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "net/recovery/base_model.h"

namespace atl {
namespace {

namespace http = boost::beast::http;

std::string_view base_model_target(const HttpRequest& request) {
  return {request.target().data(), request.target().size()};
}

}  // namespace

bool BaseModelFiles::serves(const HttpRequest& request) {
  return base_model_target(request) == kBaseModelManifestPath || base_model_target(request) == kBaseModelParametersPath;
}

boost::asio::awaitable<bool> BaseModelFiles::answer(TlsStream& stream, const HttpRequest& request) const {
  const std::filesystem::path path = base_model_target(request) == kBaseModelManifestPath
                                         ? home_.base_model_manifest()
                                         : home_.base_model_parameters();
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (request.method() != http::verb::get || !file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    co_return co_await answer_text(stream, request, http::status::not_found, "there is no base model here\n");
  }
  co_return co_await answer_file(stream, request, file, static_cast<std::uint64_t>(info.st_size));
}

}  // namespace atl
