// The page, the state of the server, and the description of its API.
#include <zlib.h>

#include "heed/serve/app.h"
#include "heed/serve/embedded.h"

namespace heed::serve {
namespace {

// Scripts and styles are inside the page; nothing is loaded from elsewhere.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'unsafe-inline' 'self' blob:; style-src 'unsafe-inline'; img-src data: blob: 'self'; "
    "media-src blob: 'self'; connect-src 'self'; font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'";

constexpr const char* kPlainPage =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>heed</title>"
    "<style>body{font:16px system-ui;max-width:40em;margin:3em auto;padding:0 1em}</style><h1>heed serve</h1>"
    "<p>This program was built without its page (<code>web/dist/index.html.gz</code>). The API works: "
    "<a href=\"/openapi.json\">its description</a>, <a href=\"/v1/models\">models</a>, <a href=\"/api/info\">server</a>, "
    "<a href=\"/metrics\">counters</a>.</p></html>\n";

std::string gunzip(const std::string& bytes) {
  z_stream stream{};
  check(inflateInit2(&stream, 15 + 16) == Z_OK, "page: zlib does not have enough memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int status = Z_OK;
  while (status == Z_OK) {
    char part[1 << 16];
    stream.next_out = reinterpret_cast<Bytef*>(part);
    stream.avail_out = sizeof part;
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(part, sizeof part - stream.avail_out);
  }
  inflateEnd(&stream);
  check(status == Z_STREAM_END, "page: the compressed page is damaged");
  return out;
}

void give_page(const Call& call) {
  static const std::string compressed = page_file(), plain = compressed.empty() ? kPlainPage : gunzip(compressed);
  Response out{.type = "text/html; charset=utf-8", .body = plain, .headers = {{"Content-Security-Policy", kPagePolicy}}};
  if (!compressed.empty() && accepts_gzip(call.request())) {
    out.body = compressed;
    out.headers.emplace_back("Content-Encoding", "gzip");
  }
  call.reply(std::move(out));
}

void give_health(const Call& call) {
  const bool stopping = call.app.stopping();
  call.reply({{"status", stopping ? "stopping" : "ok"}}, stopping ? 503 : 200);
}

void give_metrics(const Call& call) {
  call.reply(Response{.type = "text/plain; version=0.0.4; charset=utf-8", .body = call.app.metrics().text(call.app.connections())});
}

void give_openapi(const Call& call) { call.reply(Response{.body = openapi_file()}); }

}  // namespace

Endpoints server_endpoints() {
  return {{"GET", "/", Where::here, give_page},
          {"GET", "/health", Where::here, give_health},
          {"GET", "/metrics", Where::worker, give_metrics},
          {"GET", "/openapi.json", Where::worker, give_openapi}};
}

}  // namespace heed::serve
