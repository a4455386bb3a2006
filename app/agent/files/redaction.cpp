#include "app/agent/files/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace atl {
namespace {

constexpr std::string_view kGone = "[redacted]";
constexpr std::size_t kLongestPlainRun = 31;
constexpr std::size_t kLongestAuthority = 512;
constexpr int kWordsBefore = 4;  // "the password is not set to ..."

bool is_run(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' || c == '=' || c == '/';
}
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool begins_with_case(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool ends_line(char c) { return c == '\n' || c == '\r'; }
bool is_quote(char c) { return c == '"' || c == '\''; }

template <class Is>
std::size_t count_while(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is) - text.begin());
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> words, std::size_t& length) {
  for (const std::string_view word : words) {
    length = word.size();
    if (begins_with_case(text, word)) return true;
  }
  length = 0;
  return false;
}

// Where a secret is: bytes that stay, and bytes that go. None: nothing goes.
struct Secret {
  std::size_t kept = 0, gone = 0;
};

// An invite, or a link with one.
Secret invite_in(std::string_view text) {
  if (!begins_with_case(text, "atoll1.") && !begins_with_case(text, "atoll:join")) return {};
  return {0, count_while(text, [](char c) { return !is_space(c) && !ends_line(c) && !is_quote(c); })};
}

Secret pem_in(std::string_view text) {
  if (!text.starts_with("-----BEGIN") || text.substr(0, 80).find("KEY-----") == std::string_view::npos) return {};
  const auto end = text.find("-----END");
  if (end == std::string_view::npos) return {0, text.size()};  // torn: the rest of it is still the key
  const auto line = text.find('\n', end);
  return {0, line == std::string_view::npos ? text.size() : line};
}

// Of "://user:password@host" what is before the host. A name alone stays (ssh://me@node), but for where it would be a
// token.
Secret url_credentials_in(std::string_view text, bool of_web) {
  constexpr std::string_view kMark = "://";
  if (!text.starts_with(kMark)) return {};
  const std::string_view rest = text.substr(kMark.size(), kLongestAuthority);
  const std::string_view whole =
      rest.substr(0, count_while(rest, [](char c) { return !is_space(c) && !ends_line(c) && c != '"'; }));
  // What stands around a URL ends it; but these may also be a part of its password.
  const std::string_view bare =
      whole.substr(0, count_while(whole, [](char c) { return c != '\'' && c != '<' && c != '>'; }));
  const std::string_view run = bare.find('@') == std::string_view::npos ? whole : bare;
  std::string_view authority = run.substr(0, run.find_first_of("/?#"));
  const auto colon = authority.find(':');
  const bool port =
      colon != std::string_view::npos && authority.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  // A password may hold what ends an authority.
  if (colon != std::string_view::npos && !port && authority.find('@') == std::string_view::npos) authority = run;
  const auto at = authority.rfind('@');
  if (at == std::string_view::npos || at == 0) return {};
  const bool has_password = authority.substr(0, at).find(':') != std::string_view::npos;
  return has_password || of_web ? Secret{kMark.size(), at} : Secret{};
}

// "Authorization: Bearer abc", "Cookie: a=b": up to the end of the line, for values have quotes in them.
Secret header_in(std::string_view text) {
  std::size_t name = 0;
  if (!begins_with_any(text, {"authorization", "set-cookie", "cookie"}, name)) return {};
  std::size_t at = name;
  const auto skip = [&](auto is) { at += count_while(text.substr(at), is); };
  skip([](char c) { return is_quote(c) || c == '\\' || is_space(c); });
  if (at >= text.size() || (text[at] != ':' && text[at] != '=')) return {};
  ++at;
  skip([](char c) { return is_quote(c) || c == '\\' || is_space(c); });
  std::size_t scheme = 0;
  if (begins_with_any(text.substr(at), {"bearer ", "basic ", "digest ", "token ", "negotiate "}, scheme)) at += scheme;
  return {at, count_while(text.substr(at), [](char c) { return !ends_line(c); })};
}

// "Bearer abc": as in a header always, else what looks like no word of a sentence.
Secret bearer_in(std::string_view text) {
  constexpr std::string_view kWord = "bearer";
  if (!begins_with_case(text, kWord)) return {};
  const std::size_t between = count_while(text.substr(kWord.size()), [](char c) {
    return is_space(c) || is_quote(c) || c == '\\' || c == ':' || c == '=';
  });
  if (between == 0) return {};
  const std::size_t at = kWord.size() + between;
  const std::string_view run =
      text.substr(at, count_while(text.substr(at), [](char c) { return is_run(c) || c == '.' || c == '~'; }));
  const bool word = std::all_of(run.begin(), run.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  return word && text[0] == 'b' ? Secret{} : Secret{at, run.size()};
}

Secret web_token_in(std::string_view text) {
  if (!text.starts_with("eyJ")) return {};
  const std::size_t length = count_while(text, [](char c) { return is_run(c) || c == '.'; });
  return length < 16 ? Secret{} : Secret{0, length};
}

// What is said of a secret rather than one: "the password is wrong".
bool is_said_of_secrets(std::string_view word) {
  static constexpr std::array<std::string_view, 26> kWords = {
      "a",     "an",    "the",   "not",     "no",      "wrong", "missing", "invalid",  "incorrect",
      "empty", "set",   "unset", "known",   "unknown", "given", "needed",  "required", "expired",
      "too",   "never", "only",  "refused", "in",      "used",  "now",     "to"};
  while (!word.empty() && (word.back() == '.' || word.back() == ',' || word.back() == ';' || word.back() == ':')) {
    word.remove_suffix(1);
  }
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// Bytes of an unquoted value: a comma, a semicolon or a bracket ends it where nothing follows that could be more of it.
std::size_t bare_value_length(std::string_view text) {
  std::size_t length = 0;
  for (; length < text.size(); ++length) {
    const char c = text[length];
    if (is_space(c) || ends_line(c) || is_quote(c) || c == '&') break;
    const char next = length + 1 < text.size() ? text[length + 1] : ' ';
    const bool may_end = c == ',' || c == ';' || c == '}' || c == ')' || c == ']';
    if (may_end && (is_space(next) || ends_line(next) || is_quote(next) || next == '}' || next == ',')) break;
  }
  return length;
}

// "hunter2", and no word or number of a sentence.
bool looks_made_up(std::string_view text) {
  constexpr std::size_t kShort = 6;
  const std::string_view word = text.substr(0, bare_value_length(text));
  const auto has = [&](int (*is)(int)) {
    return std::any_of(word.begin(), word.end(), [&](char c) { return is(static_cast<unsigned char>(c)) != 0; });
  };
  return word.size() >= kShort && has(std::isdigit) && has(std::isalpha);
}

// "password: x", "token = x", "\"secret\": \"x y\"", "the password is x", "--token x", "password hunter2".
Secret named_in(std::string_view text, bool of_option) {
  std::size_t at = 0;
  if (!begins_with_any(text,
                       {"secret_key", "secret-key", "secretkey", "secret", "password", "passwd", "passphrase", "token",
                        "privatekey", "private_key", "private-key", "apikey", "api_key", "api-key", "accesskey",
                        "access_key", "access-key", "credentials", "credential"},
                       at)) {
    return {};
  }
  const bool of_words = begins_with_case(text, "passphrase");
  const auto skip = [&](auto is) {
    const std::size_t count = count_while(text.substr(at), is);
    at += count;
    return count;
  };
  skip([](char c) { return is_quote(c) || c == '\\'; });
  const bool spaced = skip(is_space) > 0;
  std::size_t verb = 0;
  if (at < text.size() && (text[at] == ':' || text[at] == '=')) {
    skip([](char c) { return c == ':' || c == '=' || c == '>'; });
  } else if (spaced && begins_with_any(text.substr(at), {"is ", "was ", "is:", "was:", "is=", "was="}, verb)) {
    at += verb;
    skip([](char c) { return c == ':' || c == '='; });
  } else if (!spaced || !(of_option || looks_made_up(text.substr(at))) || (at < text.size() && text[at] == '-')) {
    return {};
  }
  skip(is_space);
  const std::size_t opened = skip([](char c) { return c == '\\' || is_quote(c); });
  const std::string_view rest = text.substr(at);
  if (opened > 0) {
    const char quote = text[at - 1];
    return {at, count_while(rest, [&](char c) { return c != quote && !ends_line(c); })};
  }
  if (of_words) return {at, count_while(rest, [](char c) { return !ends_line(c) && !is_quote(c); })};
  std::size_t scheme = 0;
  if (begins_with_any(rest, {"bearer ", "basic "}, scheme))
    return {at, scheme + bare_value_length(rest.substr(scheme))};
  std::size_t begin = 0, value = bare_value_length(rest);
  if (verb == 0 || !is_said_of_secrets(rest.substr(0, value))) return {at, value};
  for (int words = 0; words < kWordsBefore && is_said_of_secrets(rest.substr(begin, value)); ++words) {
    begin += value + count_while(rest.substr(begin + value), is_space);
    value = bare_value_length(rest.substr(begin));
  }
  return looks_made_up(rest.substr(begin)) ? Secret{at + begin, value} : Secret{};  // "the password was set to hunter2"
}

// Of "digest=0123" the name, after which the value is another: at the end an equals sign is base64's.
std::size_t run_length(std::string_view text) {
  const std::size_t length = count_while(text, is_run);
  const auto equals = text.substr(0, length).find('=');
  const bool names = equals != std::string_view::npos && equals + 1 < length && is_word(text[equals + 1]);
  return names ? equals : length;
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

// What is looked at is bounded, for this is asked at each character of a log.
bool is_scheme_of_web(std::string_view before) {
  const std::string_view end = before.substr(before.size() - std::min<std::size_t>(before.size(), 5));
  for (const std::string_view scheme : {"http", "https", "ftp", "ftps", "ws", "wss"}) {
    if (end.size() >= scheme.size() && begins_with_case(end.substr(end.size() - scheme.size()), scheme)) return true;
  }
  return false;
}

bool is_option(std::string_view before) {
  constexpr std::size_t kLongest = 32;
  const std::string_view end = before.substr(before.size() - std::min(before.size(), kLongest));
  return end.substr(end.find_last_of(" \t\n\"'") + 1).starts_with("--");  // npos + 1 is 0
}

Secret secret_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at), before = text.substr(0, at);
  if (std::string_view("aAbBcCeEpPsStT:-").find(rest[0]) == std::string_view::npos) return {};  // what any begins with
  const bool begins_word = at == 0 || !is_word(before.back());
  for (const Secret& found : {invite_in(rest), pem_in(rest), header_in(rest)}) {
    if (found.gone > 0) return found;
  }
  if (const Secret found = url_credentials_in(rest, is_scheme_of_web(before)); found.gone > 0) return found;
  if (const Secret found = named_in(rest, is_option(before)); found.gone > 0) return found;
  if (!begins_word) return {};
  const Secret bearer = bearer_in(rest);
  return bearer.gone > 0 ? bearer : web_token_in(rest);
}

}  // namespace

std::string redacted(std::string_view text, std::string_view home_directory) {
  std::string kept;
  kept.reserve(text.size());
  std::size_t harmless_until = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool begins_word = at == 0 || !is_word(text[at - 1]);
    if (home_directory.size() > 1 && rest.starts_with(home_directory)) {
      kept += '~';
      at += home_directory.size();
      continue;
    }
    if (const Secret secret = secret_at(text, at); secret.gone > 0) {
      kept.append(rest.substr(0, secret.kept)).append(kGone);
      at += secret.kept + secret.gone;
      continue;
    }
    if (begins_word && is_word(rest[0]) && at >= harmless_until) {
      const std::size_t length = run_length(rest);
      const bool in_path = at > 0 && text[at - 1] == '/';
      if (length > kLongestPlainRun && !is_harmless(rest.substr(0, length), in_path)) {
        kept += kGone;
        at += length;
        continue;
      }
      harmless_until = at + length;  // looked at; a named secret may still be in it
    }
    kept += rest[0];
    ++at;
  }
  return kept;
}

}  // namespace atl
