// Takes secrets out of text that leaves the machine: invites, keys, passwords, tokens, and whatever looks like one. It
// takes too much rather than too little. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace atl {

// Invites ("atoll1...", "atoll:..."), PEM blocks of keys, the value after a word such as secret, password, token or
// key, and runs of 32 or more letters and digits that no hash in hexadecimal is. `home_directory`, if not empty,
// becomes
// "~".
std::string redacted(std::string_view text, std::string_view home_directory = {});

}  // namespace atl
