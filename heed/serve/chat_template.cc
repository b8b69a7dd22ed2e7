#include "heed/serve/chat_template.h"

#include <fstream>
#include <sstream>

#include "heed/io/paths.h"
#include "heed/serve/jinja.h"

namespace heed::serve {
namespace {

Json tokenizer_config(const Path& folder) {
  const Path path = folder / "tokenizer_config.json";
  return path_exists(path) ? read_json(path) : Json::object();
}

// One template, or the one named "default" of several.
std::string template_in(const Path& folder, const Json& config) {
  if (const Path path = folder / "chat_template.jinja"; path_exists(path)) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  if (!config.is_object() || !config.contains("chat_template")) return "";
  const Json& found = config["chat_template"];
  if (found.is_string()) return found.get<std::string>();
  if (found.is_array())
    for (const Json& each : found)
      if (each.is_object() && each.value("name", "") == "default" && each.contains("template") && each["template"].is_string())
        return each["template"].get<std::string>();
  return "";
}

// "<s>", or {"content": "<s>", ...}
Json special_token(const Json& config, const char* key) {
  if (!config.contains(key)) return "";
  const Json& found = config[key];
  return found.is_object() && found.contains("content") ? found["content"] : found.is_string() ? found : Json("");
}

}  // namespace

bool has_chat_template(const Path& folder) { return !template_in(folder, tokenizer_config(folder)).empty(); }

std::string chat_prompt(const Path& folder, const Json& messages) {
  const Json config = tokenizer_config(folder);
  const std::string text = template_in(folder, config);
  check<FileError>(!text.empty(), folder.string(), ": has no chat template, expected chat_template in tokenizer_config.json");
  Json values{{"messages", messages}, {"add_generation_prompt", true}};
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) values[key] = special_token(config, key);
  return JinjaTemplate(text, (folder / "tokenizer_config.json").string() + ": chat_template").render(values);
}

}  // namespace heed::serve
