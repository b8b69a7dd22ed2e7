#include "heed/serve/jinja_values.h"

#include <algorithm>

namespace heed::serve {
namespace {

constexpr std::string_view kBlank = " \t\r\n\f\v";

std::string stripped(const std::string& text, const std::string& letters, bool left, bool right) {
  const std::string_view which = letters.empty() ? kBlank : std::string_view(letters);
  size_t begin = left ? std::min(text.find_first_not_of(which), text.size()) : 0, end = text.size();
  if (right) end = begin < end ? text.find_last_not_of(which) + 1 : begin;
  return text.substr(begin, std::max(begin, end) - begin);
}

std::string in_case(std::string text, bool upper) {
  for (char& letter : text)
    if (upper ? letter >= 'a' && letter <= 'z' : letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter ^ 0x20);
  return text;
}

void append(std::string& out, std::string_view more) {
  check(std::ssize(out) + std::ssize(more) <= kLargestValue, "a text is longer than ", kLargestValue, " letters");
  out += more;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  std::string out;
  size_t at = 0;
  for (size_t end = text.find(from); end != std::string::npos; end = text.find(from, at)) {
    append(out, std::string_view(text).substr(at, end - at));
    append(out, to);
    at = end + from.size();
  }
  append(out, std::string_view(text).substr(at));
  return out;
}

Json split_text(const std::string& text, const std::string& separator) {
  Json out = Json::array();
  if (separator.empty()) {
    for (size_t at = text.find_first_not_of(kBlank); at < text.size();) {
      const size_t end = std::min(text.find_first_of(kBlank, at), text.size());
      out.push_back(text.substr(at, end - at));
      at = text.find_first_not_of(kBlank, end);
    }
    return out;
  }
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    out.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return out;
    at = end + separator.size();
  }
}

std::string string_argument(const std::vector<Json>& arguments, size_t i) {
  if (i >= arguments.size() || arguments[i].is_null()) return "";
  check(arguments[i].is_string(), "found the argument ", arguments[i].dump(), ", expected a text");
  return arguments[i].get<std::string>();
}

int64_t length_of(const Json& value) {
  check(value.is_string() || value.is_array() || value.is_object(), "a value without length");
  return value.is_string() ? std::ssize(value.get_ref<const std::string&>()) : static_cast<int64_t>(value.size());
}

std::string joined(const Json& list, const std::string& separator) {
  std::string out;
  for (const Json& each : list) {
    if (!out.empty()) append(out, separator);
    append(out, text_of_value(each));
  }
  return out;
}

}  // namespace

bool is_true(const Json& value) {
  if (value.is_discarded() || value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  return value.is_string() ? !value.get_ref<const std::string&>().empty() : !value.empty();
}

std::string text_of_value(const Json& value) {
  if (value.is_discarded()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool contains_value(const Json& container, const Json& value) {
  if (container.is_string() && value.is_string())
    return container.get_ref<const std::string&>().find(value.get_ref<const std::string&>()) != std::string::npos;
  if (container.is_object()) return value.is_string() && container.contains(value.get<std::string>());
  check(container.is_array(), "in: found ", text_of_value(container), ", expected a text, a list or an object");
  return std::find(container.begin(), container.end(), value) != container.end();
}

Json item_of(const Json& container, const Json& key) {
  if (container.is_object() && key.is_string()) {
    const auto found = container.find(key.get<std::string>());
    return found == container.end() ? undefined_value() : *found;
  }
  if (!key.is_number_integer() || !(container.is_array() || container.is_string())) return undefined_value();
  int64_t at = key.get<int64_t>();
  if (at < 0) at += length_of(container);
  if (at < 0 || at >= length_of(container)) return undefined_value();
  if (container.is_string()) return std::string(1, container.get_ref<const std::string&>()[static_cast<size_t>(at)]);
  return container[static_cast<size_t>(at)];
}

Json part_of(const Json& container, const Json& first, const Json& last, const Json& step) {
  const int64_t length = length_of(container), stride = step.is_number_integer() ? step.get<int64_t>() : 1;
  check(stride == 1 || (stride == -1 && !first.is_number() && !last.is_number()), "a part with the step ", stride, ", expected 1 or -1");
  const auto place = [&](const Json& at, int64_t fallback) {
    if (!at.is_number_integer()) return fallback;
    const int64_t number = at.get<int64_t>();
    return std::clamp<int64_t>(number < 0 ? number + length : number, 0, length);
  };
  const int64_t begin = place(first, 0), end = std::max(begin, place(last, length));
  if (container.is_string()) {
    std::string out = container.get_ref<const std::string&>().substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    if (stride == -1) std::reverse(out.begin(), out.end());
    return out;
  }
  Json out = Json::array();
  for (int64_t i = begin; i < end; ++i) out.push_back(container[static_cast<size_t>(stride == 1 ? i : length - 1 - i)]);
  return out;
}

int64_t size_of_value(const Json& value, int depth) {
  constexpr int deepest = 64;
  check(depth < deepest, "lists are nested too deeply");
  int64_t out = value.is_string() ? std::ssize(value.get_ref<const std::string&>()) : 1;
  if (value.is_structured())
    for (const Json& each : value) out += size_of_value(each, depth + 1);
  check(out <= kLargestValue, "a value is larger than ", kLargestValue, " letters");
  return out;
}

Json apply_binary(const std::string& op, const Json& a, const Json& b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "in") return contains_value(b, a);
  if (op == "~") return text_of_value(a) + text_of_value(b);
  if (op == "+" && a.is_string() && b.is_string()) return a.get<std::string>() + b.get<std::string>();
  if (op == "+" && a.is_array() && b.is_array()) {
    Json out = a;
    out.insert(out.end(), b.begin(), b.end());
    return out;
  }
  const bool comparable = (a.is_number() && b.is_number()) || (a.is_string() && b.is_string());
  if (comparable && op == "<") return a < b;
  if (comparable && op == ">") return b < a;
  if (comparable && op == "<=") return !(b < a);
  if (comparable && op == ">=") return !(a < b);
  check(a.is_number_integer() && b.is_number_integer(), op, " of ", text_of_value(a), " and ", text_of_value(b),
        ", expected whole numbers");
  const int64_t x = a.get<int64_t>(), y = b.get<int64_t>();
  int64_t out = 0;
  if (op == "%") {
    check(y > 0, "a remainder of ", y);
    return x % y < 0 ? x % y + y : x % y;
  }
  const bool overflows = op == "+"   ? __builtin_add_overflow(x, y, &out)
                         : op == "-" ? __builtin_sub_overflow(x, y, &out)
                                     : __builtin_mul_overflow(x, y, &out);
  check(!overflows, x, " ", op, " ", y, " is too large");
  return out;
}

Json apply_filter(const std::string& name, const Json& value, const std::vector<Json>& arguments) {
  if (name == "length" || name == "count") return length_of(value);
  if (name == "tojson") return value.is_discarded() ? "null" : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (name == "string") return text_of_value(value);
  if (name == "default") return value.is_discarded() && !arguments.empty() ? arguments[0] : value;
  if (name == "safe" || name == "list") return value;
  if (name == "first" || name == "last") return item_of(value, name == "first" ? 0 : -1);
  if (name == "join") return joined(value, string_argument(arguments, 0));
  check(name == "trim" || name == "upper" || name == "lower" || name == "replace" || name == "capitalize", "the filter ", name,
        " is not known");
  const std::string text = text_of_value(value);
  if (name == "trim") return stripped(text, string_argument(arguments, 0), true, true);
  if (name == "replace") return replaced(text, string_argument(arguments, 0), string_argument(arguments, 1));
  if (name == "capitalize") return text.empty() ? text : in_case(text.substr(0, 1), true) + in_case(text.substr(1), false);
  return in_case(text, name == "upper");
}

bool apply_test(const std::string& name, const Json& value) {
  if (name == "defined") return !value.is_discarded();
  if (name == "undefined") return value.is_discarded();
  if (name == "none") return value.is_null();
  if (name == "string") return value.is_string();
  if (name == "mapping") return value.is_object();
  if (name == "iterable" || name == "sequence") return value.is_array() || value.is_string() || value.is_object();
  if (name == "number") return value.is_number();
  if (name == "boolean") return value.is_boolean();
  if (name == "true") return value.is_boolean() && value.get<bool>();
  if (name == "false") return value.is_boolean() && !value.get<bool>();
  fail("the test ", name, " is not known");
}

Json apply_method(const std::string& name, const Json& value, const std::vector<Json>& arguments) {
  if (value.is_object() && name == "get") {
    const Json found = arguments.empty() ? undefined_value() : item_of(value, arguments[0]);
    return found.is_discarded() ? arguments.size() > 1 ? arguments[1] : Json(nullptr) : found;
  }
  if (value.is_object() && name == "items") {
    Json out = Json::array();
    for (const auto& [key, each] : value.items()) out.push_back(Json::array({key, each}));
    return out;
  }
  check(value.is_string(), "the method ", name, " of ", text_of_value(value), " is not known");
  const std::string text = value.get<std::string>(), first = string_argument(arguments, 0);
  if (name == "strip" || name == "lstrip" || name == "rstrip") return stripped(text, first, name != "rstrip", name != "lstrip");
  if (name == "startswith") return text.starts_with(first);
  if (name == "endswith") return text.ends_with(first);
  if (name == "upper" || name == "lower") return in_case(text, name == "upper");
  if (name == "replace") return replaced(text, first, string_argument(arguments, 1));
  if (name == "split") return split_text(text, first);
  fail("the method ", name, " is not known");
}

}  // namespace heed::serve
