// Pages as people see them: opened in Debian's Chromium, without a network, at the width of a laptop or of a phone.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/io/files.h"

namespace heed::test {

inline bool have_browser() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

// ./dev browser installs one and sets HEED_NEED_BROWSER: then nothing is passed over.
#define HEED_NEEDS_BROWSER()                                                                        \
  if (!have_browser()) {                                                                            \
    if (std::getenv("HEED_NEED_BROWSER")) FAIL() << "chromium is not installed";                    \
    GTEST_SKIP() << "chromium is not installed; ./dev browser installs it and looks at every page"; \
  }                                                                                                 \
  static_assert(true)

inline constexpr int kLaptop = 1280, kTablet = 800, kPhone = 400;  // pixels
inline constexpr int kNarrowestWindow = 500;                       // of Chromium: what is narrower is shown in a frame

// Runs before anything of the page: keeps what goes wrong, and every address that the page asks for.
inline constexpr const char* kWatch = R"(<script>
window.verdict = {errors: [], asked: []};
addEventListener('error', e => verdict.errors.push(String(e.message || 'cannot be loaded: ' + (e.target.src || e.target.href)).slice(0, 200)), true);
addEventListener('unhandledrejection', e => verdict.errors.push(String(e.reason)));
console.error = (...words) => verdict.errors.push(words.join(' '));
for (const name of ['fetch', 'open']) window[name] = where => { verdict.asked.push(String(where)); };
XMLHttpRequest.prototype.open = (way, where) => { verdict.asked.push(String(where)); };
</script>)";

// Runs when the page stands: what is empty, what is broken, what runs over the edge.
inline constexpr const char* kLook = R"(
  for (const entry of performance.getEntriesByType('resource')) if (!entry.name.startsWith('data:')) verdict.asked.push(entry.name);
  const figures = [...document.querySelectorAll('svg')].filter(svg => svg.getClientRects().length);
  verdict.figures = figures.length;
  verdict.empty = figures.filter(svg => { const box = svg.getBBox(); return !(box.width > 0 && box.height > 0); }).length;
  const pictures = [...document.images];
  verdict.pictures = pictures.length;
  verdict.broken = pictures.filter(img => !(img.complete && img.naturalWidth > 0)).length;
  verdict.overflow = Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
)";

// What the browser says of a page: errors, asked, figures, empty, pictures, broken, overflow, and whatever the script adds to `verdict`.
inline nlohmann::json look_at(const Path& page, int width = kLaptop, const std::string& script = "") {
  const Folder folder;
  std::string text = get(page);
  const size_t head = text.find("<head>"), end = text.rfind("</body>");
  check(head != std::string::npos && end != std::string::npos, "no page: ", page.string());
  text.insert(end, "<script>addEventListener('load', async () => { try {" + std::string(kLook) + script +
                       "} catch (e) { verdict.errors.push('checks: ' + e); }\n"
                       "window.top.postMessage(JSON.stringify(verdict), '*'); });</script>");
  text.insert(head + 6, kWatch);
  put(folder / "page.html", text);
  put(folder / "frame.html",
      "<!doctype html><body style='margin:0'><script>addEventListener('message', e => { const out = document.createElement('textarea');"
      "out.id = 'verdict'; out.textContent = e.data; document.body.append(out); });</script><iframe src='page.html' "
      "style='border:0;width:" +
          std::to_string(width) + "px;height:1000px'></iframe></body>");
  const std::string command =
      "HOME='" + folder.path().string() + "' timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage" +
      " --host-resolver-rules='MAP * ~NOTFOUND' --window-size=" + std::to_string(std::max(width, kNarrowestWindow)) +
      ",1000 --virtual-time-budget=8000" + " --dump-dom 'file://" + (folder / "frame.html").string() + "' >'" + (folder / "dom").string() +
      "' 2>/dev/null";
  check(std::system(command.c_str()) == 0, "chromium ended badly");
  std::string dom = get(folder / "dom");
  const std::string open = "<textarea id=\"verdict\">";
  const size_t begin = dom.find(open), close = dom.find("</textarea>", begin);
  check(begin != std::string::npos && close != std::string::npos, "the page gave no verdict");
  dom = dom.substr(begin + open.size(), close - begin - open.size());
  for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&nbsp;", " "}, {"&amp;", "&"}})
    for (size_t at = dom.find(from); at != std::string::npos; at = dom.find(from, at + 1)) dom.replace(at, std::strlen(from), to);
  return nlohmann::json::parse(dom);
}

// No error, nothing asked for, nothing empty or broken, nothing over the edge.
inline void expect_sound(const nlohmann::json& seen) {
  EXPECT_TRUE(seen["errors"].empty()) << seen["errors"];
  EXPECT_TRUE(seen["asked"].empty()) << seen["asked"];
  EXPECT_EQ(seen["empty"], 0);
  EXPECT_EQ(seen["broken"], 0);
  EXPECT_EQ(seen["overflow"], 0);
}

}  // namespace heed::test
