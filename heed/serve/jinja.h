// Templates in a subset of Jinja, as chat templates of tokenizer_config.json use it: text, {{ expressions }}, if, for, set, filters,
// tests and the methods of strings. Everything else is refused when the template is read. Rendering is bounded in steps and output.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed::serve {

struct JinjaNode;

class JinjaTemplate {
 public:
  // A FileError names the line and what was not understood. source: for messages
  JinjaTemplate(const std::string& text, std::string source);

  // Names in the template are keys of `values`. raise_exception('...') in the template is a UsageError with its text.
  std::string render(const Json& values) const;

 private:
  std::string source_;
  std::shared_ptr<const JinjaNode> root_;
};

}  // namespace heed::serve
