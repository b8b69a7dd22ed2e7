// Values of templates: the filters, tests, methods and operators that they use. An undefined value is Json's `discarded`.
#pragma once

#include "heed/io/json.h"

namespace heed::serve {

inline Json undefined_value() { return Json(Json::value_t::discarded); }

bool is_true(const Json& value);
std::string text_of_value(const Json& value);  // as Python's str()
bool contains_value(const Json& container, const Json& value);
Json item_of(const Json& container, const Json& key);  // undefined if there is none
Json part_of(const Json& container, const Json& first, const Json& last, const Json& step);

inline constexpr int64_t kLargestValue = int64_t{16} << 20;
int64_t size_of_value(const Json& value, int depth = 0);  // letters and items. An Error if it is larger, or nested too deeply

// An Error if there is no such name, or not for these values.
Json apply_binary(const std::string& op, const Json& a, const Json& b);
Json apply_filter(const std::string& name, const Json& value, const std::vector<Json>& arguments);
bool apply_test(const std::string& name, const Json& value);
Json apply_method(const std::string& name, const Json& value, const std::vector<Json>& arguments);

}  // namespace heed::serve
