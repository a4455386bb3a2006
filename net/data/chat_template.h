// The template in which chats are trained (chat.h), for whoever writes to a model that learned them. Constants.
#pragma once

#include <string_view>

namespace atl {

// As a run's configuration calls it.
inline constexpr std::string_view kLlama3ChatTemplateName = "llama3";

// In the language of Jinja, as transformers renders it: of the same messages the tokens of append_chat.
inline constexpr std::string_view kLlama3ChatTemplate =
    "{{ '<|begin_of_text|>' }}"
    "{% for message in messages %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' "
    "}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

}  // namespace atl
