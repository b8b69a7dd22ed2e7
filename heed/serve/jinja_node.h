// The syntax tree of a template.
#pragma once

#include "heed/serve/jinja.h"

namespace heed::serve {

using JinjaNodes = std::vector<std::shared_ptr<const JinjaNode>>;

struct JinjaNode {
  enum class Kind {
    // Statements. block: children in order; output: children[0]; loop: children[0] the list, [1] the body, names[0], [1] its variables;
    // condition: children in pairs of condition and block, then the last block; assign: children[0] to names[0] or names[0].names[1]
    block,
    text,
    output,
    loop,
    condition,
    assign,
    // Expressions. attribute, filter, test, method: of children[0], with further children as arguments; names: of keyword arguments
    literal,
    name,
    attribute,
    index,
    slice,  // children[1], [2]: may be null
    call,
    method,
    filter,
    test,
    negate,
    minus,
    binary,
    choose,  // children: value, condition, otherwise (may be null)
    list,
  };
  Kind kind;
  std::string text = {};  // of a text, a name or an operator
  Json value = {};        // of a literal
  JinjaNodes children = {};
  std::vector<std::string> names = {};
  int64_t line = 0;
  int depth = 1;  // of the tree below
};

// source: for messages
std::shared_ptr<const JinjaNode> parse_jinja(const std::string& text, const std::string& source);

}  // namespace heed::serve
