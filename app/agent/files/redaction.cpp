#include "app/agent/files/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace atl {
namespace {

constexpr std::string_view kGone = "[redacted]";
constexpr std::size_t kLongestPlainRun = 31;

bool is_run(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' || c == '=' || c == '/';
}
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool begins_with_case(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

// Bytes from `at` that are an invite or a link with one; 0: none.
std::size_t invite_length(std::string_view text) {
  if (!begins_with_case(text, "atoll1.") && !begins_with_case(text, "atoll:join")) return 0;
  std::size_t length = 0;
  while (length < text.size() && std::isspace(static_cast<unsigned char>(text[length])) == 0 && text[length] != '"' &&
         text[length] != '\'') {
    ++length;
  }
  return length;
}

std::size_t pem_length(std::string_view text) {
  if (!text.starts_with("-----BEGIN") || text.substr(0, 80).find("KEY-----") == std::string_view::npos) return 0;
  const auto end = text.find("-----END");
  if (end == std::string_view::npos) return text.size();  // torn: the rest of it is still the key
  const auto line = text.find('\n', end);
  return line == std::string_view::npos ? text.size() : line;
}

// Of "password: x", "token=x", "\"secret\": \"x\"": bytes up to the value, and of the value.
bool named_secret(std::string_view text, std::size_t& name, std::size_t& value) {
  static constexpr std::array<std::string_view, 9> kNames = {"secret",     "password", "passwd",  "passphrase", "token",
                                                             "privatekey", "apikey",   "api_key", "private_key"};
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [&](std::string_view word) { return begins_with_case(text, word); });
  if (found == kNames.end()) return false;
  name = found->size();
  const std::size_t begin = name;
  while (name < text.size() && name < begin + 4 &&
         std::string_view("\"' :=").find(text[name]) != std::string_view::npos) {
    ++name;
  }
  const std::string_view between = text.substr(begin, name - begin);
  if (between.find_first_of(":=") == std::string_view::npos) return false;
  value = 0;
  while (name + value < text.size() &&
         std::string_view(" \t\r\n\"',;}").find(text[name + value]) == std::string_view::npos) {
    ++value;
  }
  return value > 0;
}

// Hashes tell nothing, and are what one wants to compare; keys in hexadecimal are not written anywhere.
bool is_harmless(std::string_view run, bool in_path) {
  const bool hex = std::all_of(run.begin(), run.end(), [](char c) {
    return std::string_view("0123456789abcdef").find(c) != std::string_view::npos;
  });
  if (hex) return run.size() == 40 || run.size() == 64 || run.size() < 32;
  // Paths and sentences in kebab case have separators; a secret has few.
  std::size_t longest = 0, length = 0;
  for (const char c : run) {
    length = is_word(c) ? length + 1 : 0;
    longest = std::max(longest, length);
  }
  const bool digits =
      std::any_of(run.begin(), run.end(), [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return longest <= kLongestPlainRun && run.find_first_of("/-_") != std::string_view::npos && (in_path || !digits);
}

}  // namespace

std::string redacted(std::string_view text, std::string_view home_directory) {
  std::string kept;
  kept.reserve(text.size());
  std::size_t harmless_until = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool begins_word = at == 0 || !is_word(text[at - 1]);
    std::size_t name = 0, value = 0;
    if (home_directory.size() > 1 && rest.starts_with(home_directory)) {
      kept += '~';
      at += home_directory.size();
    } else if (const std::size_t invite = invite_length(rest); invite > 0) {
      kept += kGone;
      at += invite;
    } else if (const std::size_t pem = pem_length(rest); pem > 0) {
      kept += kGone;
      at += pem;
    } else if (named_secret(rest, name, value)) {
      kept.append(rest.substr(0, name)).append(kGone);
      at += name + value;
    } else if (begins_word && is_word(rest[0]) && at >= harmless_until) {
      const auto end = std::find_if_not(rest.begin(), rest.end(), is_run);
      const auto length = static_cast<std::size_t>(end - rest.begin());
      const bool in_path = at > 0 && text[at - 1] == '/';
      if (length > kLongestPlainRun && !is_harmless(rest.substr(0, length), in_path)) {
        kept += kGone;
        at += length;
        continue;
      }
      harmless_until = at + length;  // looked at; a named secret may still be in it
      kept += rest[0];
      ++at;
    } else {
      kept += rest[0];
      ++at;
    }
  }
  return kept;
}

}  // namespace atl
