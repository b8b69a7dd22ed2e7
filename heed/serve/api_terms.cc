// /api/terms: the descriptors of all score terms, with values for the tokens or the grid of the query.
#include "heed/core/parse.h"
#include "heed/serve/app.h"
#include "heed/serve/tensor_json.h"
#include "heed/serve/term_values.h"

namespace heed::serve {
namespace {

const char* use_name(TermUse use) {
  return use == TermUse::call ? "call" : use == TermUse::position ? "position" : use == TermUse::pattern ? "pattern" : "key";
}

const char* type_name(TermSetting::Type type) {
  return type == TermSetting::Type::whole ? "whole" : type == TermSetting::Type::number ? "number" : "flag";
}

Json term_json(const TermInfo& info, const TermPlace& requested) {
  TermPlace place = requested;
  if (info.needs_grid && place.rows == 0) place.rows = place.columns = 8, place.tokens = 64;
  TermValues values;
  complete_settings(info, values, place);
  Json settings = Json::array(), parameters = Json::array();
  for (const TermSetting& each : info.settings)
    settings.push_back({{"name", each.name},
                        {"meaning", each.meaning},
                        {"type", type_name(each.type)},
                        {"least", each.least},
                        {"default", values.at(each.name)}});
  for (const TermParameter& each : info.parameters)
    parameters.push_back({{"name", each.name},
                          {"file_name", each.file_name},
                          {"meaning", each.meaning},
                          {"shape", each.shape_text()},
                          {"learned", each.learned},
                          {"default", tensor_json(initial_parameter(each, 1, values, 1))}});
  return {{"name", info.name},
          {"aliases", info.aliases},
          {"summary", info.summary},
          {"source", info.source},
          {"struct", info.struct_name},
          {"file", info.file},
          {"use", use_name(info.use)},
          {"masks", info.masks},
          {"needs_grid", info.needs_grid},
          {"needs_content", info.needs_content},
          {"in_attend", usable_in_attend(info)},
          {"settings", std::move(settings)},
          {"parameters", std::move(parameters)}};
}

int64_t number_in_query(const std::string& text, const char* name, int64_t most) {
  const int64_t out = parse_number<int64_t>(text).value_or(0);
  require(out >= 1 && out <= most, 400, name, ": found ", in_quotes(text, 20), ", expected a number from 1 to ", most);
  return out;
}

void list_terms(const Call& call) {
  TermPlace place{.tokens = 16};
  if (const std::string tokens = call.query("tokens"); !tokens.empty()) place.tokens = number_in_query(tokens, "tokens", 1024);
  if (const std::string grid = call.query("grid"); !grid.empty()) {
    const size_t times = grid.find('x');
    require(times != std::string::npos, 400, "grid: found ", in_quotes(grid, 20), ", expected for example 8x8");
    place.rows = number_in_query(grid.substr(0, times), "grid", 32);
    place.columns = number_in_query(grid.substr(times + 1), "grid", 32);
    place.tokens = place.rows * place.columns;
  }
  Json terms = Json::array();
  for (const TermInfo& each : term_infos()) terms.push_back(term_json(each, place));
  call.reply({{"tokens", place.tokens}, {"grid", place.rows > 0 ? Json{place.rows, place.columns} : Json()}, {"terms", std::move(terms)}});
}

}  // namespace

Endpoints term_endpoints() { return {{"GET", "/api/terms", Where::worker, list_terms}}; }

}  // namespace heed::serve
