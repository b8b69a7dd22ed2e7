#include "heed/serve/jinja.h"

#include <map>

#include "heed/serve/jinja_node.h"
#include "heed/serve/jinja_values.h"

namespace heed::serve {
namespace {

using Kind = JinjaNode::Kind;

constexpr int64_t kMostSteps = 200'000;
constexpr size_t kLongestOutput = size_t{4} << 20;
constexpr int64_t kMostCopied = int64_t{4} << 30;  // letters and items of all values

class JinjaRenderer {
 public:
  JinjaRenderer(const Json& values, const std::string& source) : source_(source) {
    scopes_.emplace_back();
    for (const auto& [name, value] : values.items()) scopes_[0][name] = value;
  }

  std::string run(const JinjaNode& root) {
    statement(root);
    return std::move(out_);
  }

 private:
  void count(const JinjaNode& node) {
    check<UsageError>(++steps_ <= kMostSteps, source_, ": line ", node.line, ": the template takes too many steps");
  }

  void write(const std::string& text) {
    out_ += text;
    check<UsageError>(out_.size() <= kLongestOutput, source_, ": the template writes too much");
  }

  void statement(const JinjaNode& node) {
    count(node);
    switch (node.kind) {
      case Kind::block:
        for (const auto& each : node.children) statement(*each);
        return;
      case Kind::text: return write(node.text);
      case Kind::output: return write(text_of_value(value(*node.children[0])));
      case Kind::condition: return condition(node);
      case Kind::loop: return loop(node);
      case Kind::assign: return assign(node);
      default: fail(source_, ": not a statement");
    }
  }

  void condition(const JinjaNode& node) {
    for (size_t i = 0; i + 1 < node.children.size(); i += 2)
      if (is_true(value(*node.children[i]))) return statement(*node.children[i + 1]);
    if (node.children.size() % 2 == 1) statement(*node.children.back());
  }

  void loop(const JinjaNode& node) {
    Json list = value(*node.children[0]);
    if (list.is_discarded()) return;
    if (list.is_object()) {
      Json keys = Json::array();
      for (const auto& [key, ignored] : list.items()) keys.push_back(key);
      list = std::move(keys);
    }
    check<UsageError>(list.is_array(), source_, ": line ", node.line, ": for: found ", text_of_value(list), ", expected a list");
    const auto bind = [&](const Json& item) {
      if (node.names.size() == 1) {
        scopes_.back()[node.names[0]] = item;
        return;
      }
      for (size_t i = 0; i < node.names.size(); ++i) scopes_.back()[node.names[i]] = item_of(item, i);
    };
    scopes_.emplace_back();
    if (node.children[2]) {
      Json kept = Json::array();
      for (const Json& item : list) {
        bind(item);
        if (is_true(value(*node.children[2]))) kept.push_back(item);
      }
      list = std::move(kept);
    }
    const size_t length = list.size();
    for (size_t i = 0; i < length; ++i) {
      scopes_.back().clear();
      bind(list[i]);
      scopes_.back()["loop"] = {{"index", i + 1},          {"index0", i},      {"first", i == 0},
                                {"last", i + 1 == length}, {"length", length}, {"revindex", length - i}};
      if (i > 0) scopes_.back()["loop"]["previtem"] = list[i - 1];
      if (i + 1 < length) scopes_.back()["loop"]["nextitem"] = list[i + 1];
      statement(*node.children[1]);
    }
    scopes_.pop_back();
  }

  void assign(const JinjaNode& node) {
    Json found = value(*node.children[0]);
    if (node.names.size() == 1) {
      scopes_.back()[node.names[0]] = std::move(found);
      return;
    }
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto space = scope->find(node.names[0]); space != scope->end() && space->second.is_object()) {
        space->second[node.names[1]] = found.is_discarded() ? Json() : std::move(found);
        return;
      }
    fail<UsageError>(source_, ": line ", node.line, ": ", node.names[0], " is not a namespace");
  }

  Json variable(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    return undefined_value();
  }

  std::vector<Json> arguments(const JinjaNode& node, size_t first) {
    std::vector<Json> out;
    for (size_t i = first; i < node.children.size(); ++i) out.push_back(value(*node.children[i]));
    return out;
  }

  Json call(const JinjaNode& node) {
    const std::vector<Json> given = arguments(node, 0);
    if (node.text == "raise_exception") fail<UsageError>(given.empty() ? "the chat template refuses this" : text_of_value(given[0]));
    if (node.text == "namespace") {
      Json out = Json::object();
      for (size_t i = 0; i < given.size(); ++i) out[node.names[i]] = given[i].is_discarded() ? Json() : given[i];
      return out;
    }
    if (node.text == "range") {
      Json out = Json::array();
      const int64_t begin = given.size() > 1 ? given[0].get<int64_t>() : 0, end = given.empty() ? 0 : given.back().get<int64_t>();
      check(end <= begin || static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) <= kMostSteps, "range: too long");
      for (int64_t i = begin; i < end; ++i) out.push_back(i);
      return out;
    }
    fail("the function ", node.text, " is not known");
  }

  // Concatenation doubles texts, so steps alone do not bound them.
  Json value(const JinjaNode& node) {
    Json out = unbounded_value(node);
    try {
      copied_ += size_of_value(out);
      check(copied_ <= kMostCopied, "the template computes with too much text");
    } catch (const Error& error) {
      fail<UsageError>(source_, ": line ", node.line, ": ", error.what());
    }
    return out;
  }

  Json unbounded_value(const JinjaNode& node) {
    count(node);
    const auto child = [&](size_t i) { return node.children[i] ? value(*node.children[i]) : Json(); };
    try {
      switch (node.kind) {
        case Kind::literal: return node.value;
        case Kind::name: return variable(node.text);
        case Kind::attribute: return item_of(child(0), node.text);
        case Kind::index: return item_of(child(0), child(1));
        case Kind::slice: return part_of(child(0), child(1), child(2), child(3));
        case Kind::call: return call(node);
        case Kind::method: return apply_method(node.text, child(0), arguments(node, 1));
        case Kind::filter: return apply_filter(node.text, child(0), arguments(node, 1));
        case Kind::test: return apply_test(node.text, child(0));
        case Kind::negate: return !is_true(child(0));
        case Kind::minus: return apply_binary("-", 0, child(0));
        case Kind::choose: return is_true(child(1)) ? child(0) : node.children[2] ? child(2) : undefined_value();
        case Kind::list: {
          Json out = Json::array();
          for (const Json& each : arguments(node, 0)) out.push_back(each.is_discarded() ? Json() : each);
          return out;
        }
        case Kind::binary: {
          if (node.text == "and" || node.text == "or") {
            Json left = child(0);
            return is_true(left) == (node.text == "or") ? left : child(1);
          }
          return apply_binary(node.text, child(0), child(1));
        }
        default: fail("not an expression");
      }
    } catch (const UsageError&) {
      throw;
    } catch (const std::exception& error) {
      fail<UsageError>(source_, ": line ", node.line, ": ", error.what());
    }
  }

  const std::string& source_;
  std::vector<std::map<std::string, Json>> scopes_;
  std::string out_;
  int64_t steps_ = 0, copied_ = 0;
};

}  // namespace

JinjaTemplate::JinjaTemplate(const std::string& text, std::string source) : source_(std::move(source)), root_(parse_jinja(text, source_)) {}

std::string JinjaTemplate::render(const Json& values) const { return JinjaRenderer(values, source_).run(*root_); }

}  // namespace heed::serve
