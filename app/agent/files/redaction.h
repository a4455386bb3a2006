// Takes secrets out of text that leaves the machine: invites, keys, passwords, tokens, and whatever looks like one. It
// takes too much rather than too little. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace atl {

// Invites ("atoll1...", "atoll:..."), PEM blocks of keys, what is before the host of an URL ("https://me:pw@host"), the
// values of the headers Authorization and Cookie, what follows a word such as secret, password, token or key ("token =
// x", "password is x", "--token x"), and runs of 32 or more letters and digits that no hash in hexadecimal is.
// `home_directory`, if not empty, becomes "~".
std::string redacted(std::string_view text, std::string_view home_directory = {});

}  // namespace atl
