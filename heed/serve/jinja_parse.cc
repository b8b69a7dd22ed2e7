#include <algorithm>

#include "heed/serve/jinja_lexer.h"
#include "heed/serve/jinja_node.h"

namespace heed::serve {
namespace {

using Node = std::shared_ptr<const JinjaNode>;
using Kind = JinjaNode::Kind;
using Token = JinjaToken::Kind;

constexpr int kDeepestNesting = 100;
constexpr int kDeepestTree = 400;  // chains such as a + b + c nest too; every level costs stack when the template is rendered

class JinjaParser {
 public:
  JinjaParser(std::vector<JinjaToken> tokens, const std::string& source) : tokens_(std::move(tokens)), source_(source) {}

  Node run() {
    Node out = block({});
    if (here().kind != Token::end) refuse("a tag that begins no block");
    return out;
  }

 private:
  const JinjaToken& here() const { return tokens_[at_]; }
  [[noreturn]] void refuse(const std::string& found, const std::string& expected = "") const {
    fail<FileError>(source_, ": line ", here().line, ": found ", found, expected.empty() ? "" : ", expected " + expected);
  }
  [[noreturn]] void unexpected(const std::string& expected) const {
    refuse(here().kind == Token::end ? "the end of the template" : in_quotes(here().text, 30), expected);
  }
  bool is(Token kind, std::string_view text) const { return here().kind == kind && here().text == text; }
  bool take(Token kind, std::string_view text) {
    if (!is(kind, text)) return false;
    ++at_;
    return true;
  }
  bool symbol(std::string_view text) { return take(Token::symbol, text); }
  bool word(std::string_view text) { return take(Token::name, text); }
  void need(std::string_view text) {
    if (!symbol(text)) unexpected(std::string(text));
  }
  std::string need_name() {
    if (here().kind != Token::name) unexpected("a name");
    return tokens_[at_++].text;
  }
  void close() {
    if (here().kind != Token::close_tag) unexpected("%}");
    ++at_;
  }
  Node make(Kind kind, std::string text = {}, JinjaNodes children = {}, std::vector<std::string> names = {}) const {
    JinjaNode out{.kind = kind, .text = std::move(text), .children = std::move(children), .names = std::move(names), .line = here().line};
    for (const Node& each : out.children) out.depth = std::max(out.depth, each ? each->depth + 1 : 1);
    if (out.depth > kDeepestTree) refuse("a template nested too deeply");
    return std::make_shared<JinjaNode>(std::move(out));
  }

  // --- statements
  // Until a tag that begins with one of the words, which is read up to that word.
  Node block(const std::vector<std::string>& ends) {
    if (++depth_ > kDeepestNesting) refuse("blocks nested too deeply");
    JinjaNodes out;
    while (here().kind != Token::end) {
      if (here().kind == Token::text) {
        out.push_back(make(Kind::text, here().text));
        ++at_;
      } else if (here().kind == Token::open_output) {
        ++at_;
        out.push_back(make(Kind::output, "", {expression()}));
        if (here().kind != Token::close_output) unexpected("}}");
        ++at_;
      } else {
        ++at_;
        if (here().kind == Token::name && std::find(ends.begin(), ends.end(), here().text) != ends.end()) break;
        out.push_back(statement());
      }
    }
    if (!ends.empty() && here().kind == Token::end) unexpected(ends.back());
    --depth_;
    return make(Kind::block, "", std::move(out));
  }

  Node statement() {
    if (word("if")) return condition();
    if (word("for")) return loop();
    if (word("set")) return assignment();
    if (word("generation")) {  // marks what the model writes, for training
      close();
      Node body = block({"endgeneration"});
      ++at_;
      close();
      return body;
    }
    unexpected("if, for or set: heed reads a subset of Jinja");
  }

  Node condition() {
    JinjaNodes parts{expression()};
    close();
    for (;;) {
      parts.push_back(block({"elif", "else", "endif"}));
      if (!word("elif")) break;
      parts.push_back(expression());
      close();
    }
    if (word("else")) {
      close();
      parts.push_back(block({"endif"}));
    }
    ++at_;
    close();
    return make(Kind::condition, "", std::move(parts));
  }

  Node loop() {
    std::vector<std::string> names{need_name()};
    if (symbol(",")) names.push_back(need_name());
    if (!word("in")) unexpected("in");
    Node list = disjunction(), filter;
    if (word("if")) filter = disjunction();
    close();
    Node body = block({"endfor"});
    ++at_;
    close();
    return make(Kind::loop, "", {list, body, filter}, std::move(names));
  }

  Node assignment() {
    std::vector<std::string> names{need_name()};
    if (symbol(".")) names.push_back(need_name());
    need("=");
    Node value = expression();
    close();
    return make(Kind::assign, "", {value}, std::move(names));
  }

  // --- expressions, from the loosest operator to the tightest
  Node expression() {
    if (++depth_ > kDeepestNesting) refuse("an expression nested too deeply");
    Node out = disjunction();
    if (word("if")) {
      Node condition = disjunction(), otherwise = word("else") ? expression() : nullptr;
      out = make(Kind::choose, "", {out, condition, otherwise});
    }
    --depth_;
    return out;
  }
  Node disjunction() {
    Node out = conjunction();
    while (word("or")) out = make(Kind::binary, "or", {out, conjunction()});
    return out;
  }
  Node conjunction() {
    Node out = negation();
    while (word("and")) out = make(Kind::binary, "and", {out, negation()});
    return out;
  }
  // A loop, as recursion could be deeper than the stack.
  Node prefixed(Kind kind, Token token, std::string_view text, Node (JinjaParser::*part)()) {
    int64_t times = 0;
    while (take(token, text)) ++times;
    Node out = (this->*part)();
    for (; times > 0; --times) out = make(kind, "", {out});
    return out;
  }
  Node negation() { return prefixed(Kind::negate, Token::name, "not", &JinjaParser::comparison); }
  Node comparison() {
    Node out = sum();
    for (;;) {
      const std::string text = here().text;
      if (here().kind == Token::symbol && (text == "==" || text == "!=" || text == "<" || text == ">" || text == "<=" || text == ">=")) {
        ++at_;
        out = make(Kind::binary, text, {out, sum()});
      } else if (word("in")) {
        out = make(Kind::binary, "in", {out, sum()});
      } else if (is(Token::name, "not") && tokens_[at_ + 1].kind == Token::name && tokens_[at_ + 1].text == "in") {
        at_ += 2;
        out = make(Kind::negate, "", {make(Kind::binary, "in", {out, sum()})});
      } else {
        return out;
      }
    }
  }
  Node chain(Node (JinjaParser::*part)(), std::string_view operators) {
    Node out = (this->*part)();
    while (here().kind == Token::symbol && here().text.size() == 1 && operators.find(here().text) != std::string_view::npos) {
      const std::string text = tokens_[at_++].text;
      out = make(Kind::binary, text, {out, (this->*part)()});
    }
    return out;
  }
  Node sum() { return chain(&JinjaParser::product, "+-~"); }
  Node product() { return chain(&JinjaParser::unary, "*%"); }
  Node unary() { return prefixed(Kind::minus, Token::symbol, "-", &JinjaParser::operand); }
  Node operand() { return with_tests(with_filters(postfix(primary()))); }
  Node with_filters(Node out) {
    while (symbol("|")) {
      const std::string name = need_name();
      JinjaNodes children{out};
      std::vector<std::string> names;
      if (symbol("(")) arguments(children, names);
      out = postfix(make(Kind::filter, name, std::move(children), std::move(names)));
    }
    return out;
  }
  Node with_tests(Node out) {
    while (word("is")) {
      const bool negated = word("not");
      out = make(Kind::test, need_name(), {out});
      if (negated) out = make(Kind::negate, "", {out});
    }
    return out;
  }
  void arguments(JinjaNodes& children, std::vector<std::string>& names) {
    while (!symbol(")")) {
      const bool keyword = here().kind == Token::name && tokens_[at_ + 1].kind == Token::symbol && tokens_[at_ + 1].text == "=";
      names.push_back(keyword ? need_name() : "");
      if (keyword) need("=");
      children.push_back(expression());
      if (!symbol(",") && !is(Token::symbol, ")")) unexpected(")");
    }
  }
  Node postfix(Node out) {
    for (;;) {
      if (symbol(".")) {
        const std::string name = need_name();
        JinjaNodes children{out};
        std::vector<std::string> names;
        const bool method = symbol("(");
        if (method) arguments(children, names);
        out = make(method ? Kind::method : Kind::attribute, name, std::move(children), std::move(names));
      } else if (symbol("[")) {
        Node first = is(Token::symbol, ":") ? nullptr : expression();
        if (symbol(":")) {
          Node last = is(Token::symbol, "]") || is(Token::symbol, ":") ? nullptr : expression();
          Node step = symbol(":") ? expression() : nullptr;
          out = make(Kind::slice, "", {out, first, last, step});
        } else {
          out = make(Kind::index, "", {out, first});
        }
        need("]");
      } else if (symbol("(")) {
        if (out->kind != Kind::name) unexpected("the name of a function");
        JinjaNodes children;
        std::vector<std::string> names;
        arguments(children, names);
        out = make(Kind::call, out->text, std::move(children), std::move(names));
      } else {
        return out;
      }
    }
  }
  Node literal(Json value) const {
    return std::make_shared<JinjaNode>(JinjaNode{.kind = Kind::literal, .value = std::move(value), .line = here().line});
  }
  Node primary() {
    const JinjaToken& token = here();
    if (token.kind == Token::string || token.kind == Token::number) {
      ++at_;
      return literal(token.kind == Token::string ? Json(token.text) : token.value);
    }
    if (token.kind == Token::name) {
      ++at_;
      if (token.text == "true" || token.text == "True") return literal(true);
      if (token.text == "false" || token.text == "False") return literal(false);
      if (token.text == "none" || token.text == "None") return literal(nullptr);
      return make(Kind::name, token.text);
    }
    if (symbol("(")) {
      Node out = expression();
      need(")");
      return out;
    }
    JinjaNodes items;
    if (symbol("[")) {
      while (!symbol("]")) {
        items.push_back(expression());
        if (!symbol(",") && !is(Token::symbol, "]")) unexpected("]");
      }
      return make(Kind::list, "", std::move(items));
    }
    unexpected("an expression");
  }

  std::vector<JinjaToken> tokens_;
  const std::string& source_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::shared_ptr<const JinjaNode> parse_jinja(const std::string& text, const std::string& source) {
  return JinjaParser(jinja_tokens(text, source), source).run();
}

}  // namespace heed::serve
