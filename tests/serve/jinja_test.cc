// Chat templates: a subset of Jinja.
#include "heed/serve/jinja.h"

#include <gtest/gtest.h>

#include "heed/serve/chat_template.h"
#include "tests/io/files.h"

namespace heed::serve {
namespace {

using test::Folder;
using test::put;

std::string rendered(const std::string& text, const Json& values = Json::object()) { return JinjaTemplate(text, "test").render(values); }

std::string error_of(const std::string& text, const Json& values = Json::object()) {
  try {
    return "no error: " + rendered(text, values);
  } catch (const Error& error) {
    return error.what();
  }
}

const Json kMessages = {{{"role", "system"}, {"content", "Be brief."}}, {{"role", "user"}, {"content", " Hi "}}};

TEST(Jinja, renders_text_and_values) {
  EXPECT_EQ(rendered("a{{ b }}c", {{"b", "x"}}), "axc");
  EXPECT_EQ(rendered("{{ missing }}|{{ none }}|{{ true }}|{{ 3 }}"), "|None|True|3");
  EXPECT_EQ(rendered("{{ 'it\\'s' }}{# a comment #}."), "it's.");
  EXPECT_EQ(rendered("{{ a.b[0]['c'] }}", {{"a", {{"b", {{{"c", 5}}}}}}}), "5");
}

TEST(Jinja, trims_whitespace_around_tags) {
  EXPECT_EQ(rendered("a  {%- if true -%}  b  {%- endif %} c"), "ab c");
  EXPECT_EQ(rendered("{% if true %}\nx\n{% endif %}\ny"), "x\ny");
  EXPECT_EQ(rendered("  {% set a = 1 %}\n{{ a }}\n"), "1\n");
}

TEST(Jinja, evaluates_expressions) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"1 + 2 * 3 - 4", "3"},
      {"7 % 2 == 1", "True"},
      {"'a' ~ 1", "a1"},
      {"'a' + 'b'", "ab"},
      {"not false and (false or true)", "True"},
      {"'b' in 'abc' and 2 not in [1, 3]", "True"},
      {"x is defined or y is not defined", "True"},
      {"'no' if false else 'yes'", "yes"},
      {"[1, 2, 3][1:] | length", "2"},
      {"[1, 2, 3][::-1] | first", "3"},
      {"'abc'[::-1]", "cba"},
      {"(0 - 7) % 3", "2"},
      {"'abab' | replace('b', 'bb')", "abbabb"},
      {"' a ' | trim | upper", "A"},
      {"'a,b'.split(',')[1]", "b"},
      {"' xx '.strip().startswith('x')", "True"},
  };
  for (const auto& [expression, expected] : cases) EXPECT_EQ(rendered("{{ " + expression + " }}"), expected) << expression;
}

TEST(Jinja, supports_loops_and_variables) {
  EXPECT_EQ(rendered("{% for x in l %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}", {{"l", {"a", "b"}}}),
            "1a,2b");
  EXPECT_EQ(rendered("{% set n = namespace(v=0) %}{% for x in [1, 2, 3] %}{% set n.v = n.v + x %}{% endfor %}{{ n.v }}"), "6");
  EXPECT_EQ(rendered("{% set v = 0 %}{% for x in [1] %}{% set v = 5 %}{% endfor %}{{ v }}"),
            "0");  // as in Jinja: loops have their own scope
  EXPECT_EQ(rendered("{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{% endfor %}", {{"l", {1, 2, 3}}}), "2232");
}

// The template of ChatML, and one like that of Llama 2.
TEST(Jinja, renders_conversations) {
  const std::string chatml =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  EXPECT_EQ(rendered(chatml, {{"messages", kMessages}, {"add_generation_prompt", true}}),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
  const std::string llama =
      "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}"
      "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
      "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
      "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>' + system_message + '<</SYS>>' + message['content'] "
      "%}"
      "{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
      "{{ bos_token + '[INST] ' + content | trim + ' [/INST]' }}{% else %}{{ ' ' + content | trim + eos_token }}{% endif %}{% endfor %}";
  EXPECT_EQ(rendered(llama, {{"messages", kMessages}, {"bos_token", "<s>"}, {"eos_token", "</s>"}}),
            "<s>[INST] <<SYS>>Be brief.<</SYS>> Hi [/INST]");
  const Json twice = {{{"role", "user"}, {"content", "a"}}, {{"role", "user"}, {"content", "b"}}};
  EXPECT_EQ(error_of(llama, {{"messages", twice}, {"bos_token", ""}, {"eos_token", ""}}), "roles must alternate");
}

TEST(Jinja, refuses_unsupported_and_invalid_templates) {
  EXPECT_NE(error_of("a\n{% macro f() %}").find("line 2"), std::string::npos) << error_of("a\n{% macro f() %}");
  EXPECT_NE(error_of("{% include 'x' %}").find("subset of Jinja"), std::string::npos);
  EXPECT_NE(error_of("{{ a | frobnicate }}").find("frobnicate"), std::string::npos);
  EXPECT_NE(error_of("{{ open('/etc/passwd') }}").find("the function open is not known"), std::string::npos);
  EXPECT_NE(error_of("{{ a.__class__() }}").find("is not known"), std::string::npos);
  for (const char* bad : {"{{", "{% if %}", "{% if true %}", "{% endfor %}", "{{ 'a }}", "{{ a[ }}", "{{ (1 }}", "{% for x %}{% endfor %}",
                          "{{ 1 + }}", "{# x"})
    EXPECT_THROW(rendered(bad), Error) << bad;
}

TEST(Jinja, limits_steps_output_and_nesting) {
  const std::string loops = "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}";
  EXPECT_NE(error_of(loops).find("too many steps"), std::string::npos);
  std::string doubling = "{% set n = namespace(t='xxxxxxxx') %}";
  for (int i = 0; i < 20; ++i) doubling += "{% set n.t = n.t + n.t %}";
  EXPECT_NE(error_of(doubling + "{{ n.t }}").find("too much"), std::string::npos);
  EXPECT_THROW(rendered("{{ " + std::string(100000, '(') + " }}"), Error);
  const auto repeated = [](const std::string& part) {
    std::string out;
    for (int i = 0; i < 100000; ++i) out += part;
    return out;
  };
  for (const std::string& chain : {"1" + repeated(" + 1"), repeated("not ") + "1", repeated("-") + "1", "'a'" + repeated("|trim"),
                                   "a" + repeated(".a"), repeated("1 if 1 else ") + "1"})
    EXPECT_NE(error_of("{{ " + chain + " }}").find("nested too deeply"), std::string::npos) << chain.substr(0, 20);
  EXPECT_EQ(rendered("{{ not not 1 }}{{ - -1 }}" + repeated("a").substr(0, 9)), "True1aaaaaaaaa");
  // Values that are never written.
  const std::string x = "{% set n = namespace(t='xxxxxxxx', l=[]) %}";
  const std::string twice = "{% for i in range(40) %}{% set n.t = n.t ~ n.t %}{% endfor %}";
  EXPECT_NE(error_of(x + twice).find("larger than"), std::string::npos) << error_of(x + twice);
  const std::string square = "{% for i in range(12) %}{% set n.t = n.t ~ n.t %}{% endfor %}{% set n.t = n.t | replace('x', n.t) %}";
  EXPECT_NE(error_of(x + square).find("longer than"), std::string::npos) << error_of(x + square);
  const std::string deep = "{% for i in range(1000) %}{% set n.l = [n.l] %}{% endfor %}";
  EXPECT_NE(error_of(x + deep).find("nested too deeply"), std::string::npos) << error_of(x + deep);
  EXPECT_THROW(rendered("{{ range(0 - 9223372036854775807, 9223372036854775807) }}"), Error);
}

TEST(ChatTemplate, comes_from_the_tokenizer_config) {
  const Folder folder;
  EXPECT_FALSE(has_chat_template(folder.path()));
  put(folder / "tokenizer_config.json",
      Json{{"chat_template", "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"},
           {"bos_token", {{"content", "<s>"}}}}
          .dump());
  EXPECT_TRUE(has_chat_template(folder.path()));
  EXPECT_EQ(chat_prompt(folder.path(), kMessages), "<s>system:Be brief.;user: Hi ;");
  put(folder / "chat_template.jinja", "other");
  EXPECT_EQ(chat_prompt(folder.path(), kMessages), "other");
}

}  // namespace
}  // namespace heed::serve
